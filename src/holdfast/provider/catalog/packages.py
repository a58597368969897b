"""Which wire an AI SDK package stands for, and where its provider is reached. Data, and one lookup.

The settings and models.dev name a JavaScript package where we name a wire; nothing of it is ever loaded.
Addresses are those that the package itself uses when none is given; `${NAME}` is filled from the environment.
"""

from typing import NamedTuple

from holdfast.provider.catalog.model import WireKind


class Package(NamedTuple):
    """`why` is set where Holdfast cannot speak to the provider, and says so. `keyless`: it wants no key."""

    wire: WireKind
    base_url: str | None = None
    why: str = ""
    keyless: bool = False


def _chat(base_url: str | None = None) -> Package:
    return Package(WireKind.OPENAI_CHAT, base_url)


def _not(why: str) -> Package:
    return Package(WireKind.UNSUPPORTED, why=why)


COMPATIBLE = "@ai-sdk/openai-compatible"
# Not of the AI SDK: a model that Holdfast serves itself (`provider/local`), and what may be missing for it.
LOCAL = "holdfast/local"
LOCAL_WITHOUT_EXTRA = "holdfast/local-without-extra"
LOCAL_WITHOUT_MODEL = "holdfast/local-without-model"
_ADVICE = f"if it has an address that speaks Chat Completions, set npm to {COMPATIBLE} and options.baseURL"

PACKAGES = {
    "@ai-sdk/anthropic": Package(WireKind.ANTHROPIC, "https://api.anthropic.com/v1"),
    "@ai-sdk/openai": Package(WireKind.OPENAI_RESPONSES, "https://api.openai.com/v1"),
    "@ai-sdk/azure": Package(
        WireKind.OPENAI_RESPONSES, "https://${AZURE_RESOURCE_NAME}.openai.azure.com/openai/v1"
    ),
    "@ai-sdk/google": Package(WireKind.GEMINI, "https://generativelanguage.googleapis.com/v1beta"),
    "@ai-sdk/amazon-bedrock": Package(WireKind.BEDROCK, why="Amazon Bedrock has no wire here yet"),
    COMPATIBLE: _chat(),
    LOCAL: Package(WireKind.OPENAI_CHAT, keyless=True),
    LOCAL_WITHOUT_EXTRA: Package(
        WireKind.OPENAI_CHAT, why="it needs an optional part: pip install 'holdfast[local]'"
    ),
    LOCAL_WITHOUT_MODEL: Package(
        WireKind.OPENAI_CHAT, why="no model is installed; run `holdfast models install smollm2`"
    ),
    "@openrouter/ai-sdk-provider": _chat("https://openrouter.ai/api/v1"),
    "@ai-sdk/groq": _chat("https://api.groq.com/openai/v1"),
    "@ai-sdk/xai": _chat("https://api.x.ai/v1"),
    "@ai-sdk/mistral": _chat("https://api.mistral.ai/v1"),
    "@ai-sdk/cerebras": _chat("https://api.cerebras.ai/v1"),
    "@ai-sdk/togetherai": _chat("https://api.together.xyz/v1"),
    "@ai-sdk/deepinfra": _chat("https://api.deepinfra.com/v1/openai"),
    "@ai-sdk/perplexity": _chat("https://api.perplexity.ai"),
    "@ai-sdk/deepseek": _chat("https://api.deepseek.com"),
    "@ai-sdk/fireworks": _chat("https://api.fireworks.ai/inference/v1"),
    "@ai-sdk/vercel": _chat("https://api.v0.dev/v1"),
    "venice-ai-sdk-provider": _chat("https://api.venice.ai/api/v1"),
    "@aihubmix/ai-sdk-provider": _chat("https://aihubmix.com/v1"),
    "ollama-ai-provider": _chat("http://127.0.0.1:11434/v1"),
    "ollama-ai-provider-v2": _chat("http://127.0.0.1:11434/v1"),
    "@ai-sdk/google-vertex": _not(
        "Vertex AI signs in with Google Cloud credentials, which Holdfast cannot do"
    ),
    "@ai-sdk/google-vertex/anthropic": _not(
        "Vertex AI signs in with Google Cloud credentials, which Holdfast cannot do"
    ),
    "@ai-sdk/github-copilot": _not("GitHub Copilot needs a sign-in of its own, which Holdfast does not have"),
    "@ai-sdk/cohere": _not(f"Cohere has a wire of its own, which Holdfast does not speak; {_ADVICE}"),
    "@ai-sdk/gateway": _not(f"this gateway has a wire of its own, which Holdfast does not speak; {_ADVICE}"),
    "ai-gateway-provider": _not(
        f"this gateway has a wire of its own, which Holdfast does not speak; {_ADVICE}"
    ),
    "gitlab-ai-provider": _not("GitLab has a wire of its own, which Holdfast does not speak"),
    "@jerome-benoit/sap-ai-provider-v2": _not(
        "SAP AI Core has a wire of its own, which Holdfast does not speak"
    ),
}

# What a provider is, whatever package its record names.
PROVIDERS = {
    "azure-cognitive-services": Package(
        WireKind.OPENAI_RESPONSES,
        "https://${AZURE_COGNITIVE_SERVICES_RESOURCE_NAME}.cognitiveservices.azure.com/openai/v1",
    ),
    "github-copilot": PACKAGES["@ai-sdk/github-copilot"],
}


def find(npm: str, provider_id: str = "") -> Package:
    """What a package stands for; an unknown one is unsupported, with advice."""
    known = PACKAGES.get(npm)
    if provider_id in PROVIDERS and npm in ("@ai-sdk/azure", COMPATIBLE):
        return PROVIDERS[provider_id]
    return known or _not(f"the package {npm} is not known; {_ADVICE}")
