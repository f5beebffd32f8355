// What a member does in a space, as the user who is signed in: each call is one SQL function, and row level security
// and the member's role decide what it may do.

export class Spaces {
  constructor(supabase) {
    this.supabase = supabase; // a client in which the user is signed in
  }

  // Creates a space, which the user manages, and gives its id.
  create = async (name) => (await this.call("memory_create_space", { p_name: name })).space_id;

  // The spaces that the user is in.
  list = () => this.call("memory_spaces", {});

  // Joins a space by the token of an invitation, and gives its id.
  join = async (token) => (await this.call("memory_join", { p_token: token })).space_id;

  // The token of an invitation: it is shown this once. Pass it on by a channel that you trust.
  invite = async (space, role) => (await this.call("memory_invite", { p_space: space, p_role: role })).token;

  // Takes a member out. They read nothing from the next statement on.
  remove = (space, member) => this.call("memory_set_member", { p_space: space, p_member: member, p_role: null });

  // Says something in a conversation of the space; `space` null: in one of the user's own.
  say = (thread, id, text, space = null) =>
    this.call("memory_append", {
      p_thread_id: thread,
      p_messages: [{ id, role: "user", content: text }],
      ...(space && { p_user_id: space }),
    });

  // What was said in a conversation of the space, each message with its author.
  read = async (space, thread) =>
    (await this.call("memory_read", { p_thread_id: thread, p_user_id: space, p_columns: ["author_id", "text"] })).messages;

  // Copies a quote of one of the user's own messages onto the board of the space. Nothing else of the message moves.
  contribute = (thread, message, quote, space) =>
    this.call("memory_contribute", {
      p_thread_id: thread,
      p_message_id: message,
      p_quote: quote,
      p_kind: "fact",
      p_space: space,
    });

  // What members have contributed, each item with who did, and when it was said.
  board = async (space) => (await this.call("memory_board", { p_thread_id: "board", p_user_id: space }))?.items ?? [];

  async call(name, args) {
    const { data, error } = await this.supabase.rpc(name, args);
    if (error) throw new Error(error.message);
    return data;
  }
}
