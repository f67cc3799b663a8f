# A model server in OpenAI's shape, and in that of Anthropic's messages: says which model it was asked for, and what it was ever told to remember; asked to "count N", it
# takes a tenth of a second for each word; asked to "tool: NAME {ARGUMENTS}", it has the assistant use that tool, and says what came of it;
# "shell: COMMAND" is the same for its shell tool; asked for "prompt: WORDS", it says the lines of its instructions that have those words.
# While a file of its own name with `.limited` behind it is there, it has had enough of everybody for today. Usage: model.py PORT
import http.server, json, os, re, sys, time

ORDER = re.compile(r"\b(shell|tool|prompt): (.*)")


def text_of(content):
    return content if isinstance(content, str) else " ".join(p.get("text", "") for p in content or [])


def as_chat(asked):
    """A request of Anthropic's messages as one of chat completions, as far as it is looked at here."""
    system, messages = asked.get("system"), []
    if system:
        messages.append({"role": "system", "content": system})
    for message in asked["messages"]:
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        messages += [{"role": "tool", "content": part.get("content")} for part in parts if part["type"] == "tool_result"]
        texts = [part for part in parts if part["type"] == "text"]
        if texts or any(part["type"] == "tool_use" for part in parts):
            calls = [part for part in parts if part["type"] == "tool_use"]
            messages.append({"role": message["role"], "content": texts, "tool_calls": calls})
    tools = [{"function": {"name": tool["name"]}} for tool in asked.get("tools", [])]
    return {**asked, "messages": messages, "tools": tools}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if os.path.exists(sys.argv[0] + ".limited"):
            error = {"message": "Rate limit reached for requests per day", "type": "rate_limit_error", "code": "rate_limit_exceeded"}
            return self.answer("application/json", json.dumps({"error": error}), 429)
        is_native = self.path.endswith("/messages")
        asked = as_chat(asked) if is_native else asked
        told = [text_of(m.get("content")) for m in asked["messages"] if m["role"] == "user"]
        kept = " ".join(re.findall(r"remember the (\w+)", " ".join(told)))
        # OpenClaw may say more after its user's words.
        orders = re.findall(r"remember the \w+|still there|and now|count (\d+)", " ".join(told))
        counted = orders[-1] if orders else ""
        words = f"{asked['model']} remembers: {kept or 'nothing'}"
        if counted:
            words = " ".join(f"word{i}" for i in range(1, int(counted) + 1))
        # OpenClaw may put words of its own behind its user's, and behind what a tool said.
        said = asked["messages"]
        orders = [(at, ORDER.findall(text_of(m.get("content")))) for at, m in enumerate(said) if m["role"] == "user"]
        ordered = [(at, found[-1]) for at, found in orders if found]
        done = [at for at, m in enumerate(said) if m["role"] == "tool"]
        answered = [at for at, m in enumerate(said) if m["role"] == "assistant" and not m.get("tool_calls")]
        tools = [tool["function"]["name"] for tool in asked.get("tools", [])]
        call = None
        if ordered and ordered[-1][0] > max([-1, *answered]):
            at, (kind, order) = ordered[-1]
            name, _, arguments = order.strip().partition(" ")
            if kind == "shell":
                name, arguments = "exec", json.dumps({"command": order.strip(), "timeoutSeconds": 60, "yieldMs": 55000})
            elif name not in tools and "tool_call" in tools:
                # OpenClaw keeps most tools in a catalogue, from which this one calls them.
                name, arguments = "tool_call", json.dumps({"id": name, "args": json.loads(arguments or "{}")})
            if kind == "prompt":
                lines = [line for m in said if m["role"] in ("system", "developer") for line in text_of(m.get("content")).splitlines()]
                words = "it says: " + " ".join(line for line in lines if order.strip() in line)
            elif done and done[-1] > at:
                words = "it said: " + text_of(said[done[-1]].get("content"))
            elif name in tools:
                call = [{"index": 0, "id": f"call_{time.time_ns()}", "type": "function", "function": {"name": name, "arguments": arguments}}]
            else:
                words = f"no {name} among: " + " ".join(tools)
        if is_native:
            return self.answer_natively(asked, words, call, 0.1 if counted else 0)
        base = {"id": "chatcmpl-1", "created": 1, "model": asked["model"]}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        if not asked.get("stream"):
            message = {"role": "assistant", "content": None, "tool_calls": call} if call else {"role": "assistant", "content": words}
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
            return self.answer("application/json", json.dumps({**base, "object": "chat.completion", "choices": [choice], "usage": usage}))
        events = [{"role": "assistant", "content": ""}] + [{"content": word + " "} for word in words.split(" ")]
        if call:
            events = [{"role": "assistant", "content": None, "tool_calls": call}]
        chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in events]
        ended = "tool_calls" if call else "stop"
        chunks += [{"choices": [{"index": 0, "delta": {}, "finish_reason": ended}]}, {"choices": [], "usage": usage}]
        lines = [f"data: {json.dumps({**base, 'object': 'chat.completion.chunk', **chunk})}\n\n" for chunk in chunks]
        self.stream(lines + ["data: [DONE]\n\n"], 0.1 if counted else 0)

    def answer_natively(self, asked, words, call, pause):
        if call:
            function = call[0]["function"]
            block = {"type": "tool_use", "id": call[0]["id"], "name": function["name"], "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": function["arguments"]}]
            whole = {**block, "input": json.loads(function["arguments"])}
        else:
            block = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": word + " "} for word in words.split(" ")]
            whole = {**block, "text": words}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "content": [], "stop_reason": None,
                   "usage": {"input_tokens": 10, "output_tokens": 1}}
        ended, usage = "tool_use" if call else "end_turn", {"input_tokens": 10, "output_tokens": 5}
        if not asked.get("stream"):
            return self.answer("application/json", json.dumps({**message, "content": [whole], "stop_reason": ended, "usage": usage}))
        events = [{"type": "message_start", "message": message}, {"type": "content_block_start", "index": 0, "content_block": block}]
        events += [{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas]
        events += [{"type": "content_block_stop", "index": 0}, {"type": "message_delta", "delta": {"stop_reason": ended}, "usage": usage},
                   {"type": "message_stop"}]
        self.stream([f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events], pause)

    def stream(self, lines, pause):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for line in lines:
                self.wfile.write(line.encode())
                self.wfile.flush()
                time.sleep(pause)
        except OSError:
            pass  # whoever asked has left
        self.close_connection = True

    def do_GET(self):
        self.answer("application/json", '{"object":"list","data":[]}')

    def answer(self, kind, body, status=200):
        body = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


http.server.ThreadingHTTPServer(("0.0.0.0", int(sys.argv[1])), Handler).serve_forever()
