import { type Answer, type Asked, exchange, readAnswer, requestText } from "./http-exchange.ts";
import type { Mask } from "./mask.ts";

/**
 * A file of recorded exchanges: requests with complete responses. Headers that depend on a proxy or the clock are
 * masked. A content length that fits the body is omitted.
 */
export type Transcript = {
  /** Sends a request, and records it with the response. Returns the body, parsed if it is JSON. */
  ask(title: string, asked: Asked & { as?: string | undefined }): Promise<Reply>;
  /** Records a text under a title. */
  note(title: string, text: string): void;
  /** Sends requests, and lists those with equal responses together. */
  group(title: string, asked: readonly (Asked & { as?: string | undefined })[]): Promise<void>;
  text(): string;
};

// biome-ignore lint/suspicious/noExplicitAny: answers of every route.
type Reply = { status: number; head: string; body: any };

export type Keys = Record<string, string>;

export function createTranscript(options: { url: string; keys: Keys; mask: Mask }): Transcript {
  const { url, keys, mask } = options;
  const blocks: string[] = [];

  const withKey = ({ as, headers, ...asked }: Asked & { as?: string | undefined }): Asked => {
    const key = as === undefined ? undefined : keys[as];
    if (as !== undefined && key === undefined) throw new Error(`no key is called ${as}`);
    return {
      ...asked,
      headers: { ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }), ...headers },
    };
  };

  const send = async (asked: Asked & { as?: string | undefined }) =>
    readAnswer(
      await exchange(url, requestText(withKey(asked)), (text) => text.includes("event: heartbeat")),
    );

  return {
    async ask(title, asked) {
      const answer = await send(asked);
      blocks.push(`## ${title}\n${shownRequest(asked, mask)}\n\n${shownAnswer(answer, mask)}`);
      return replyOf(answer);
    },
    note: (title, text) => void blocks.push(`## ${title}\n${text}`),
    async group(title, requests) {
      const byAnswer = new Map<string, string[]>();
      for (const asked of requests) {
        const shown = shownRequest(asked, mask);
        const answer = shownAnswer(await send(asked), mask);
        byAnswer.set(answer, [...(byAnswer.get(answer) ?? []), shown]);
      }
      for (const [answer, shown] of byAnswer)
        blocks.push(`## ${title}\n${shown.join("\n")}\n\n${answer}`);
    },
    text: () => `${blocks.join("\n\n")}\n`,
  };
}

function replyOf({ head, body }: Answer): Reply {
  const status = Number(head.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length));
  try {
    return { status, head, body: JSON.parse(body) };
  } catch {
    return { status, head, body };
  }
}

const maxShownLength = 400;

export function shownRequest(
  { as, method = "GET", path, headers = {}, body }: Asked & { as?: string | undefined },
  mask: Mask,
): string {
  const who = as === undefined ? "" : ` as ${as}`;
  const lines = [`> ${method} ${cut(path)}${who}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`> ${name}: ${cut(value)}`);
  if (body !== undefined)
    lines.push(`> ${cut(typeof body === "string" ? body : JSON.stringify(body))}`);
  return mask(lines.join("\n"));
}

const cut = (text: string) =>
  text.length <= maxShownLength
    ? text
    : `${text.slice(0, maxShownLength)}… (${text.length} characters)`;

export function shownAnswer({ head, body }: Answer, mask: Mask): string {
  const bytes = Buffer.byteLength(body);
  const shownHead = head.replace(/^(content-length: )(\d+)$/im, (line, name: string, length) => {
    if (Number(length) === bytes) return `${name}<of the body>`;
    return bytes === 0 ? `${name}<of a body that is not sent>` : line;
  });
  return mask(body === "" ? shownHead : `${shownHead}\n\n${body}`);
}
