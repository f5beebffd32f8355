// What the page does, without the page: it chats through the service, reads a conversation and follows its board.

import type { SupabaseClient } from "@supabase/supabase-js";

export type Message = { sequence: number; role: string; text: string };
export type Conversation = { thread_id: string; title: string | null; message_count: number };
export type Item = { id: string; kind: string; text: string; state: string };
export type Board = { title: string | null; summary: string; version: number; items: Item[] };

export type Tokens = { prompt: number; conversation: number };
export type Work = "due" | "running" | "waiting" | "dead" | "idle";

export class Chat {
  constructor(
    private supabase: SupabaseClient,
    private service: string, // where ../fastapi_chat listens
    private thread: string,
    private token: () => Promise<string>, // the signed-in user's, as it is now
  ) {}

  // Says something, and gives the answer. The service stores both.
  async say(text: string): Promise<string> {
    return (await (await this.ask("", "POST", { text })).json()).text;
  }

  // Says something, and calls `show` with the answer so far, piece by piece. The service stores both at the end.
  async stream(text: string, show: (answer: string) => void): Promise<string> {
    const { body } = await this.ask("/stream", "POST", { text });
    if (!body) throw new Error("The service did not answer.");
    const reader = body.getReader();
    const decoder = new TextDecoder(); // a piece may end within a character
    let answer = "";
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      answer += decoder.decode(piece.value, { stream: true });
      show(answer);
    }
    return answer;
  }

  // The tokens of the next prompt, and of the whole conversation.
  async tokens(): Promise<Tokens> {
    return await (await this.ask("/tokens", "GET")).json();
  }

  // Summarizes now all but the newest turn, and gives the tokens after it.
  async summarize(): Promise<Tokens> {
    return await (await this.ask("/summarize", "POST")).json();
  }

  // What a worker has to do for the conversation, straight from the database: "running" while it makes a summary.
  async work(): Promise<Work> {
    const [status] = await this.rpc<{ state: Work }[]>("memory_status", {});
    return status?.state ?? "idle";
  }

  // The user's conversations, the newest first.
  async conversations(limit = 30): Promise<Conversation[]> {
    const { data, error } = await this.supabase.rpc("memory_conversations", { p_limit: limit });
    if (error) throw new Error(error.hint ?? error.message);
    return (data as { conversations: Conversation[] }).conversations;
  }

  // The newest messages, straight from the database: row level security shows the user's own alone.
  async messages(last = 20): Promise<Message[]> {
    const page = await this.rpc<{ messages: Message[] }>("memory_read", {
      p_last: last,
      p_columns: ["sequence", "role", "text"],
    });
    return page.messages;
  }

  // What the conversation came to so far; null before anything was said.
  async board(): Promise<Board | null> {
    return await this.rpc<Board | null>("memory_board", {});
  }

  // Calls `show` with the board now and whenever it has changed, until the function that it returns is called. Realtime
  // tells at once, where `supabase-memory migrate --realtime` was run; asking every few seconds needs nothing.
  follow(show: (board: Board) => void, failed: (error: Error) => void, everyMilliseconds = 3000): () => void {
    let shown = -1;
    let ended = false;
    const look = async () => {
      try {
        const board = await this.board();
        if (ended || board === null || board.version <= shown) return;
        shown = board.version;
        show(board);
      } catch (error) {
        if (!ended) failed(error as Error);
      }
    };
    const timer = setInterval(look, everyMilliseconds);
    let channel: ReturnType<SupabaseClient["channel"]> | undefined;
    void this.changes(look).then((made) => {
      channel = made;
      if (ended) void this.supabase.removeChannel(made);
    }, failed);
    void look();
    return () => {
      ended = true;
      clearInterval(timer);
      if (channel) void this.supabase.removeChannel(channel);
    };
  }

  // Subscribes to the user's own boards. The filter leaves others' deletions out.
  private async changes(look: () => void) {
    const [, claims = ""] = (await this.token()).split(".");
    const { sub } = JSON.parse(atob(claims.replace(/-/g, "+").replace(/_/g, "/")));
    const mine = { schema: "memory", table: "conversation_summary_boards", filter: `user_id=eq.${sub}` };
    return this.supabase.channel(`board-${this.thread}`).on("postgres_changes", { event: "*", ...mine }, look).subscribe();
  }

  private async ask(path: string, method: "GET" | "POST", body?: object): Promise<Response> {
    const response = await fetch(`${this.service}/chat${path}?thread=${encodeURIComponent(this.thread)}`, {
      method,
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${await this.token()}` },
      body: body && JSON.stringify(body),
    });
    if (!response.ok) throw new Error(response.status === 401 ? "Sign in again." : await reason(response));
    return response;
  }

  private async rpc<T>(name: string, args: object): Promise<T> {
    const { data, error } = await this.supabase.rpc(name, { p_thread_id: this.thread, ...args });
    if (error) throw new Error(error.hint ?? error.message);
    return data as T;
  }
}

// Why the service refused, in its own words: a text, or a list of what is wrong with the request.
async function reason(response: Response): Promise<string> {
  const { detail } = await response.json().catch(() => ({}));
  if (typeof detail === "string") return detail;
  if (Array.isArray(detail)) return detail.map(({ msg }: { msg: string }) => msg).join(" ");
  return "The service did not answer.";
}
