// A model provider to test against: streams at a pace that a person could watch, and says what the prompt asks for.
import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const MARKDOWN = `# Tides

Water **rises** and *falls*, see [the tables](https://example.com/tides) and \`tide()\`.

| Place | High | Low |
| --- | ---: | ---: |
| Lisbon | 3.4 m | 0.9 m |

\`\`\`python
def tide(hour):  # metres
    return 2 + 1.4 * sin(hour)
\`\`\`

<script>window.broken = true</script>
`;

/** As much as a model says at most: text, lists, tables and code. */
const LONG = MARKDOWN.repeat(Math.ceil(100_000 / MARKDOWN.length));

/** A minute's worth: no test, however slow its machine, should see the end of a reply that it means to leave. */
const SLOW_WORDS = 400;

export class ModelServer {
  /** What was asked of streams that the other side ended. */
  left: string[] = [];
  asked: string[] = [];

  private constructor(private readonly server: HttpServer) {}

  static async start(): Promise<ModelServer> {
    const server = createServer();
    // As providers do. Node's own five seconds end connections at the very moment at which the gateway uses them again.
    server.keepAliveTimeout = 65_000;
    const model = new ModelServer(server);
    server.on('request', (request, response) => {
      let body = '';
      request.on('data', (piece: Buffer) => (body += piece.toString()));
      request.on('end', () => {
        const { messages } = JSON.parse(body) as { messages: { content: string }[] };
        const prompt = messages.at(-1)?.content ?? '';
        model.asked.push(prompt);
        const silent = prompt.includes('silent');
        const slow = silent || prompt.includes('slow');
        const words = prompt.includes('100 KB')
          ? (LONG.match(/.{1,24}/gs) ?? [])
          : prompt.includes('markdown')
            ? MARKDOWN.split(/(?<=\s)/)
            : slow
              ? silent
                ? Array.from({ length: SLOW_WORDS }, () => '')
                : Array.from({ length: SLOW_WORDS }, (_, index) => `word${index} `)
              : ['You ', 'said: ', prompt];
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const say = (data: object) => response.write(`data: ${JSON.stringify(data)}\n\n`);
        const chunk = (delta: object, end: string | null = null) => ({
          id: 'chatcmpl-1',
          object: 'chat.completion.chunk',
          created: 1,
          model: 'gpt-4o',
          choices: [{ index: 0, delta, finish_reason: end }],
        });
        let at = 0;
        const timer = setInterval(
          () => {
            const word = words[at];
            at += 1;
            if (word !== undefined) {
              say(chunk({ content: word }));
              return;
            }
            clearInterval(timer);
            say(chunk({}, 'stop'));
            say({
              ...chunk({}),
              choices: [],
              usage: { prompt_tokens: 40, completion_tokens: 12, total_tokens: 52 },
            });
            response.end('data: [DONE]\n\n');
          },
          slow ? 150 : prompt.includes('100 KB') ? 1 : 5,
        );
        response.on('close', () => {
          clearInterval(timer);
          if (!response.writableEnded) model.left.push(prompt);
        });
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return model;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
