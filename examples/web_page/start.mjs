// Builds the page and serves it on http://127.0.0.1:5173; a change is there when the page is loaded again.

import { context } from "esbuild";

const settings = {
  SUPABASE_URL: process.env.SUPABASE_URL,
  SUPABASE_PUBLISHABLE_KEY: process.env.SUPABASE_PUBLISHABLE_KEY, // the publishable one: whoever opens the page has it
  SERVICE_URL: process.env.SERVICE_URL ?? "http://127.0.0.1:8000",
};
for (const [name, value] of Object.entries(settings)) {
  if (!value) throw new Error(`Set ${name}.`);
}

const build = await context({
  entryPoints: ["page.ts"],
  bundle: true,
  format: "esm",
  outdir: ".",
  define: Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, JSON.stringify(value)])),
});
const { port } = await build.serve({ servedir: ".", host: "127.0.0.1", port: Number(process.env.PORT ?? 5173) });
console.log(`http://127.0.0.1:${port}`);
