"""Introducing the memory step by step: stages, who is at which, and what the old and the new context come to."""

from langchain_supabase_memory.rollout.comparison import Comparison, RolloutReport, StageReport
from langchain_supabase_memory.rollout.stages import STAGES, Decision, Rollout, Stage
from langchain_supabase_memory.rollout.verbs import Rollouts

__all__ = ["STAGES", "Comparison", "Decision", "Rollout", "RolloutReport", "Rollouts", "Stage", "StageReport"]
