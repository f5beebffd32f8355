// Embeds texts with the model of Supabase's Edge runtime: gte-small, English, 384 numbers, no key and no download.
//
//   supabase functions deploy memory-embed
//
// POST {"input": ["text", ...]} answers {"model": "gte-small", "embeddings": [[...], ...]}, a vector of length one for
// each text, in order. Anything else is answered with {"error": "..."} and a status that says why. The caller is a
// signed-in user or a server: the gateway has checked the token's signature (verify_jwt, which is on by default), so
// its role is read here and no more.

// What the Edge runtime has beside Deno: https://supabase.com/docs/guides/functions/ai-models
declare const Deno: { serve(handler: (request: Request) => Promise<Response>): unknown };
declare const Supabase: {
  ai: {
    Session: new (model: string) => {
      run(text: string, options: { mean_pool: boolean; normalize: boolean }): Promise<number[]>;
    };
  };
};

const MODEL = "gte-small";
const MOST_TEXTS = 64;
const MOST_CHARACTERS = 24_000; // of one text; the model reads the first 512 tokens

const session = new Supabase.ai.Session(MODEL);

function answer(status: number, document: unknown): Response {
  return new Response(JSON.stringify(document), { status, headers: { "Content-Type": "application/json" } });
}

function role(request: Request): string | undefined {
  try {
    const [, claims] = (request.headers.get("Authorization") ?? "").split(" ")[1].split(".");
    return JSON.parse(atob(claims.replace(/-/g, "+").replace(/_/g, "/"))).role;
  } catch {
    return undefined;
  }
}

Deno.serve(async (request) => {
  if (request.method !== "POST") {
    return answer(405, { error: "Pass a POST request." });
  }
  if (!["authenticated", "service_role"].includes(role(request) ?? "")) {
    return answer(403, { error: "Pass a signed-in user's token, or a server's." });
  }
  let input: unknown;
  try {
    ({ input } = await request.json());
  } catch {
    return answer(400, { error: 'Pass {"input": ["text", ...]}.' });
  }
  if (!Array.isArray(input) || input.length === 0 || input.some((text) => typeof text !== "string")) {
    return answer(400, { error: 'Pass {"input": ["text", ...]}.' });
  }
  if (input.length > MOST_TEXTS || input.some((text) => text.length > MOST_CHARACTERS)) {
    return answer(413, { error: `Pass at most ${MOST_TEXTS} texts of ${MOST_CHARACTERS} characters.` });
  }
  const embeddings: number[][] = [];
  for (const text of input) { // one after the other: a worker has one processor
    embeddings.push(await session.run(text, { mean_pool: true, normalize: true }));
  }
  return answer(200, { model: MODEL, embeddings });
});
