"""The official SDKs of OpenAI and Anthropic against tidepool's gateway: for testbed/sdk_check.py."""
