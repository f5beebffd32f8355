"""The result types of the public methods."""

from langchain_supabase_memory.context.explanation import Explanation, ExplanationPart
from langchain_supabase_memory.context.growth import PromptGrowth
from langchain_supabase_memory.context.pack import ContextPack
from langchain_supabase_memory.context.past_prompt import RebuiltPart, RebuiltPrompt
from langchain_supabase_memory.context.report import ContextReport
from langchain_supabase_memory.memory.conversation import Conversation
from langchain_supabase_memory.memory.space import Space
from langchain_supabase_memory.operations.advice import Advice
from langchain_supabase_memory.operations.boards.board import Board, BoardItem
from langchain_supabase_memory.operations.boards.perspective import Perspective
from langchain_supabase_memory.operations.contributions import Contribution, SharedData, SharedInSpace
from langchain_supabase_memory.operations.controls import ControlChange, OptOut
from langchain_supabase_memory.operations.manifests.diff import ManifestDiff
from langchain_supabase_memory.operations.manifests.manifest import Manifest, ManifestPage
from langchain_supabase_memory.operations.profile import Consent, ProfileEvidence, ProfileItem
from langchain_supabase_memory.operations.rollout.comparison import Comparison, RolloutReport
from langchain_supabase_memory.operations.rollout.stages import Rollout
from langchain_supabase_memory.operations.spaces import Invitation, Member, OpenInvitation, SpaceInfo
from langchain_supabase_memory.operations.summaries.complete import CompleteSummary
from langchain_supabase_memory.operations.topics import ForgottenTopic, Topic, TopicDay, TopicQuote, TopicUpdate
from langchain_supabase_memory.operations.usage import Insights, UsageDay, UserCount
from langchain_supabase_memory.operations.users import UserPage, UserSummary
from langchain_supabase_memory.operations.work import ConversationStatus, Pause, Queue
from langchain_supabase_memory.values import (
    AppendResult,
    BoardResult,
    Chunk,
    ConversationInfo,
    ConversationKey,
    ConversationPage,
    Coverage,
    FoundMessage,
    FoundPage,
    FoundSignal,
    Health,
    IndexResult,
    NewerFact,
    Recall,
    RecalledSummary,
    Receipt,
    Reference,
    Repeats,
    Segment,
    Signal,
    StoredMessage,
    SummaryResult,
    Turn,
)

__all__ = [
    "Advice",
    "AppendResult",
    "Board",
    "BoardItem",
    "BoardResult",
    "Chunk",
    "Comparison",
    "CompleteSummary",
    "Consent",
    "ContextPack",
    "ContextReport",
    "Contribution",
    "ControlChange",
    "Conversation",
    "ConversationInfo",
    "ConversationKey",
    "ConversationPage",
    "ConversationStatus",
    "Coverage",
    "Explanation",
    "ExplanationPart",
    "ForgottenTopic",
    "FoundMessage",
    "FoundPage",
    "FoundSignal",
    "Health",
    "IndexResult",
    "Insights",
    "Invitation",
    "Manifest",
    "ManifestDiff",
    "ManifestPage",
    "Member",
    "NewerFact",
    "OpenInvitation",
    "OptOut",
    "Pause",
    "Perspective",
    "ProfileEvidence",
    "ProfileItem",
    "PromptGrowth",
    "Queue",
    "RebuiltPart",
    "RebuiltPrompt",
    "Recall",
    "RecalledSummary",
    "Receipt",
    "Reference",
    "Repeats",
    "Rollout",
    "RolloutReport",
    "Segment",
    "SharedData",
    "SharedInSpace",
    "Signal",
    "Space",
    "SpaceInfo",
    "StoredMessage",
    "SummaryResult",
    "Topic",
    "TopicDay",
    "TopicQuote",
    "TopicUpdate",
    "Turn",
    "UsageDay",
    "UserCount",
    "UserPage",
    "UserSummary",
]
