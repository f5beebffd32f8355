"""A chat service: one agent for all users, and row level security by the token of each request."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import BackgroundTasks, Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, StreamingResponse
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel, Field
from users import Caller, Local, caller, signed_in, users

from langchain_supabase_memory import SummaryPolicy, SupabaseMemory, SupabaseMemoryMiddleware
from langchain_supabase_memory.errors import AccessError, InvalidInputError, SupabaseMemoryError, UnavailableError
from langchain_supabase_memory.testing import OfflineQuotingModel

# One memory and one agent for all. Before each call to the database the memory asks the context variable whose request
# is running, so that the database itself refuses everything that is somebody else's.
if "SUPABASE_URL" in os.environ:
    connections = memory = SupabaseMemory.from_url(
        os.environ["SUPABASE_URL"], os.environ["SUPABASE_PUBLISHABLE_KEY"]
    ).for_token(lambda: caller.get().token)
else:  # a private Postgres in a folder, with the same row level security
    connections = SupabaseMemory.embedded("./.demo")
    memory = connections.for_token(lambda: caller.get().claims)

model = "openai:gpt-5.5" if "OPENAI_API_KEY" in os.environ else OfflineQuotingModel()  # which can only quote
agent = create_agent(model, middleware=[SupabaseMemoryMiddleware(memory)])


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Close the connections at the end."""
    yield
    await connections.aclose()


app = FastAPI(lifespan=lifespan)
app.add_middleware(
    CORSMiddleware,
    allow_origins=os.environ.get("PAGE_ORIGIN", "http://127.0.0.1:5173").split(","),
    allow_methods=["*"],
    allow_headers=["*"],
)

User = Annotated[Caller, Depends(signed_in)]
# No part of the path: an id may hold a slash or be two dots, which servers and clients read as the path's own.
Thread = Annotated[str, Query(alias="thread", max_length=512, pattern=r"^\P{Cc}+$")]


class Said(BaseModel):
    """What a user says."""

    text: str = Field(max_length=20_000, pattern=r"\S")


@app.exception_handler(RequestValidationError)
async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
    """Name what is wrong with a request, without its words: they may be nothing that JSON can hold."""
    return JSONResponse({"detail": [{"loc": each["loc"], "msg": each["msg"]} for each in error.errors()]}, 422)


@app.exception_handler(SupabaseMemoryError)
async def failed(_: Request, error: SupabaseMemoryError) -> JSONResponse:
    """Say why the memory could not do it. Its errors hold nothing that was said."""
    kinds = {InvalidInputError: 422, AccessError: 403, UnavailableError: 503}
    status = next((status for kind, status in kinds.items() if isinstance(error, kind)), 500)
    return JSONResponse({"detail": error.message}, status)


@app.post("/chat")
async def chat(thread_id: Thread, said: Said, user: User, later: BackgroundTasks) -> dict[str, str]:
    """Answer one message."""
    # The token decides what the run may reach; `user_id` says whose turn waits here while the database is away.
    run = {"configurable": {"thread_id": thread_id, "user_id": user.user_id}}
    answer = await agent.ainvoke({"messages": [HumanMessage(said.text)]}, run)
    later.add_task(revise, thread_id, user)
    return {"text": str(answer["messages"][-1].text)}


@app.post("/chat/stream")
async def stream(thread_id: Thread, said: Said, user: User, later: BackgroundTasks) -> StreamingResponse:
    """Answer one message, piece by piece as plain text. The memory stores the whole answer at its end."""
    run = {"configurable": {"thread_id": thread_id, "user_id": user.user_id}}
    queue: asyncio.Queue[str | None] = asyncio.Queue()

    async def fill() -> None:
        asked = {"messages": [HumanMessage(said.text)]}
        try:
            async for piece, about in agent.astream(asked, run, stream_mode="messages"):
                if isinstance(piece, AIMessage) and about["langgraph_node"] == "model":
                    queue.put_nowait(str(piece.text))
        finally:
            queue.put_nowait(None)

    # The run has a task of its own: where the reader leaves, it is cancelled once, and stops the model.
    running = asyncio.create_task(fill())
    first = await queue.get()
    if first is None:
        await running  # what the memory refuses is refused before anything is sent

    async def pieces() -> AsyncIterator[str]:
        try:
            piece = first
            while piece is not None:
                yield piece
                piece = await queue.get()
            await running
        finally:
            running.cancel()

    later.add_task(revise, thread_id, user)
    return StreamingResponse(pieces(), media_type="text/plain; charset=utf-8", background=later)


@app.get("/chat")
async def read(thread_id: Thread, user: User) -> list[dict[str, str]]:
    """What was said in a conversation, the last twenty messages."""
    stored = await memory.for_user(user.user_id).conversation(thread_id).aread(last=20)
    return [{"role": each.message.type, "text": str(each.message.text)} for each in stored]


@app.get("/chat/tokens")
async def tokens(thread_id: Thread, user: User) -> dict[str, int]:
    """The tokens of the next prompt, and of the whole conversation, which it would have without a memory."""
    pack = await memory.for_user(user.user_id).conversation(thread_id).acontext(model=None)
    report = pack.report()
    return {"prompt": report.tokens, "conversation": report.full_tokens}


@app.post("/chat/summarize")
async def summarize(thread_id: Thread, user: User) -> dict[str, int]:
    """Summarize all but the newest turn now, and return the tokens after it."""
    now = SummaryPolicy(messages=1, keep_messages=2)
    await memory.for_user(user.user_id).conversation(thread_id).summaries.amake(policy=now)
    return await tokens(thread_id, user)


async def revise(thread_id: str, user: Caller) -> None:
    """Bring the board up to date when the answer is out. With `supabase-memory worker` running, leave this away."""
    try:
        await memory.for_user(user.user_id).conversation(thread_id).board.arevise()
    except SupabaseMemoryError as error:  # nobody waits for it: the next answer brings the board up to date as well
        logging.getLogger("uvicorn.error").warning("A board waits for the next answer: %s", error.message)


if isinstance(users, Local):
    app.post("/sign-in/{name}")(users.sign_in)
