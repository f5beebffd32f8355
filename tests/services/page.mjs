// Act as two concurrent users of examples/web_page, without the page: it reads
// {module, url, key, service, users: [{token, thread, says}]} and prints what each one saw: {answers, messages, board, tokens, work}.

import { text } from "node:stream/consumers";
import { createClient } from "@supabase/supabase-js";
import WebSocket from "ws";

const { module, url, key, service, users } = JSON.parse(await text(process.stdin));
const { Chat } = await import(module);

async function visit({ token, thread, says }) {
  // Realtime does not run here, so the channel stays closed and the board is asked for.
  const supabase = createClient(url, key, { accessToken: async () => token, realtime: { transport: WebSocket } });
  const chat = new Chat(supabase, service, thread, async () => token);
  const before = await chat.board();
  const answers = [];
  const seen = new Promise((resolve, reject) => {
    const stop = chat.follow(
      (board) => {
        if (board.items.length === 0) return;
        stop();
        resolve(board);
      },
      reject,
      50,
    );
  });
  for (const said of says) answers.push(await chat.say(said));
  const board = await seen;
  const [tokens, work] = [await chat.tokens(), await chat.work()];
  return { before, answers, board, messages: await chat.messages(), tokens, work, summarized: await chat.summarize() };
}

console.log(JSON.stringify(await Promise.all(users.map(visit))));
process.exit(0); // whatever a socket still waits for
