from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.package.agent_files import Topic, find_agents

if TYPE_CHECKING:
    from pathlib import Path

NAMESPACE = 'xmlns="http://soap.sforce.com/2006/04/metadata"'
PLANNER = f"""\
<GenAiPlannerBundle {NAMESPACE}>
    <genAiPlugins><genAiPluginName>Returns</genAiPluginName></genAiPlugins>
    <genAiPlugins><genAiPluginName>Standard</genAiPluginName></genAiPlugins>
    <localTopics>
        <fullName>Orders_16j000</fullName>
        <localDeveloperName>Orders</localDeveloperName>
        <description>Where orders are</description>
        <aiPluginUtterances><utterance>Where is
            my order?</utterance></aiPluginUtterances>
        <localActions><fullName>Get_Order</fullName><description>Reads it</description></localActions>
    </localTopics>
    <localTopics><fullName>Silent</fullName></localTopics>
</GenAiPlannerBundle>
"""
PLUGIN = (
    f"<GenAiPlugin {NAMESPACE}><developerName>Returns</developerName><description>Returns</description></GenAiPlugin>"
)
SCRIPT = """\
config:
    description: "Not a topic"
start_agent router:
    description: "Chooses a topic"
subagent Billing:
    label: "Bills"
    # a comment
    actions:
        pay:
            description: "Pays a bill"
            target: "flow://Pay"
    description: |
        Questions
        about bills
topic Silent:
    label: "Nothing is said"
"""
DEFINITION = f"<AiEvaluationDefinition {NAMESPACE}><subjectName>Tested_Agent</subjectName></AiEvaluationDefinition>"


def test_agents_are_found_in_bundles_scripts_bots_and_tests(tmp_path: Path) -> None:
    for name, text in {
        "bots/Old_Bot/Old_Bot.bot-meta.xml": "",
        "genAiPlannerBundles/Shop_v2/Shop_v2.genAiPlannerBundle": PLANNER,
        "genAiPlannerBundles/Broken/Broken.genAiPlannerBundle": "<GenAi",
        "genAiPlugins/Returns.genAiPlugin-meta.xml": PLUGIN,
        "aiAuthoringBundles/Clerk/Clerk.agent": SCRIPT,
        "aiEvaluationDefinitions/A.aiEvaluationDefinition-meta.xml": DEFINITION,
        "specs/b.yaml": "name: B\nsubjectName: 'Spec_Agent'\n",
        "specs/other.yaml": "subject: x\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    found = find_agents(tmp_path)

    assert found.tested == {"Tested_Agent", "Spec_Agent"}
    assert found.defined == {"Tested_Agent"}
    assert found.topics == {
        "Old_Bot": (),
        "Shop": (Topic("Orders", "Where is my order?"), Topic("Silent", ""), Topic("Returns", "Returns")),
        "Broken": (),
        "Clerk": (Topic("Billing", "Questions about bills"), Topic("Silent", "")),
    }
    assert found.names == ["Broken", "Clerk", "Old_Bot", "Shop", "Spec_Agent", "Tested_Agent"]


def test_a_folder_that_does_not_exist_names_no_agent(tmp_path: Path) -> None:
    assert find_agents(tmp_path / "missing").names == []
