"""What google-adk and evalmeta make of the same opinions of a judge: a table with the score and status of each.

A row is a metric, and of each sample the opinion on each rubric: yes, no, or a reply that cannot be read.
"""

import asyncio
import csv
import json
import re
from pathlib import Path

from google.adk.evaluation.agent_evaluator import AgentEvaluator
from google.adk.evaluation.eval_config import EvalConfig
from google.adk.evaluation.eval_set import EvalSet
from google.adk.models import BaseLlm, LlmResponse
from google.adk.models.registry import LLMRegistry
from google.genai import types

from evalmeta.adk import AgentEvaluator as Ours
from evalmeta.engine.raters.llm import LlmRater
from evalmeta.engine.raters.llm.providers import ModelReply
from evalmeta.engine.raters.llm.rater import ModelRater

MATCH = "final_response_match_v2"
ANSWER = "rubric_based_final_response_quality_v1"
TOOLS = "rubric_based_tool_use_quality_v1"
ROWS = [
    (MATCH, ["y", "y", "n"]),
    (MATCH, ["y", "n", "n"]),
    (MATCH, ["y", "n"]),
    (MATCH, ["n", "?", "y"]),
    (MATCH, ["?", "y", "?"]),
    (MATCH, ["n"]),
    (ANSWER, ["yn", "yn", "ny"]),
    (ANSWER, ["yy", "ny"]),
    (ANSWER, ["nn", "nn", "yy"]),
    (ANSWER, ["yyn", "yyn", "yyn"]),
    (TOOLS, ["yn", "yn", "ny"]),
    (TOOLS, ["ny", "yy", "yy"]),
]
LABELS = {"y": "yes", "n": "no"}
RUBRICS = [{"rubric_id": f"r{place}", "rubric_content": {"text_property": f"Rubric {place}."}} for place in range(3)]


class Judge(BaseLlm):
    """The judge of google-adk: it says the opinions of a row one after the other."""

    @classmethod
    def supported_models(cls):
        return ["table-judge"]

    async def generate_content_async(self, llm_request, stream=False):
        metric, samples = OPINIONS
        sample = samples.pop(0)
        if "?" in sample:
            text = "I cannot say."
        elif metric == MATCH:
            text = json.dumps({"reasoning": "", "is_the_agent_response_valid": "valid" if sample == "y" else "invalid"})
        else:
            text = "\n\n".join(
                f"ID: r{place}\nProperty: Rubric {place}.\nRationale: so\nVerdict: {LABELS[opinion]}"
                for place, opinion in enumerate(sample)
            )
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


class Model:
    """The judge of evalmeta: it is asked for each rubric of each sample."""

    def __init__(self, samples):
        self.samples = samples

    async def ask(self, question):
        place = int(re.search(r"Rubric (\d)|$", question.message)[1] or 0)
        opinion = self.samples[question.sample - 1][place]
        nonce = re.search("The nonce of this request is ([0-9a-f]{8})", question.system)[1]
        reply = {"nonce": nonce, "items": [], "rationale": "so", "label": LABELS.get(opinion)}
        return ModelReply(json.dumps(reply) if opinion in LABELS else "I cannot say.")

    async def close(self):
        pass


def rater_of(samples):
    return ModelRater([Model(samples)], LlmRater(adapter="llm", model="table", url="http://127.0.0.1:9/v1"))


def row_of(metric, file):
    """Return the metric's row of an output file; google-adk also writes what it measures."""
    with file.open(newline="") as opened:
        [row] = (row for row in csv.DictReader(opened) if row["metric_name"] == metric)
    return row


def outcome_of(evaluator, metric, file, **more):
    failed = False
    try:
        asyncio.run(evaluator.evaluate_eval_set("weather_agent", num_runs=1, output_file=str(file), **more))
    except AssertionError:
        failed = True
    return {**row_of(metric, file), "failed": failed}


def content(role, text):
    return {"role": role, "parts": [{"text": text}]}


LLMRegistry.register(Judge)
SET = EvalSet.model_validate(
    {
        "eval_set_id": "table",
        "eval_cases": [
            {
                "eval_id": "hello",
                "conversation": [
                    {
                        "user_content": content("user", "Hi"),
                        "final_response": content("model", "Hello! How can I help you?"),
                    }
                ],
            }
        ],
    }
)

table = []
for number, (metric, samples) in enumerate(ROWS):
    OPINIONS = metric, list(samples)
    options = {"judge_model": "table-judge", "num_samples": len(samples)}
    criterion = {"threshold": 0.6, "judge_model_options": options}
    if metric != MATCH:
        criterion["rubrics"] = RUBRICS[: len(samples[0])]
    config = EvalConfig.model_validate({"criteria": {metric: criterion}})
    how = {"eval_set": SET, "eval_config": config, "print_detailed_results": False}
    original = outcome_of(AgentEvaluator, metric, Path(f"original-{number}.csv"), **how)
    ours = outcome_of(Ours, metric, Path(f"ours-{number}.csv"), **how, rater=rater_of(samples))
    table.append({"samples": samples, "original": original, "ours": ours})
Path("table.json").write_text(json.dumps(table))
