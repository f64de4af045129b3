import { exchange, readAnswer } from "./http-exchange.ts";
import type { Mask } from "./mask.ts";
import { shownAnswer, type Transcript } from "./transcript.ts";

const host = "Host: halyard.test\r\nConnection: close\r\n";

const largeHeaders = "large headers";

/** Requests that violate HTTP, or that HTTP allows but clients rarely send. */
const requests: readonly [title: string, bytes: string][] = [
  ["no HTTP", "hello\r\n\r\n"],
  ["an unknown version", `GET /healthz HTTP/3.0\r\n${host}\r\n`],
  ["HTTP 1.0", "GET /healthz HTTP/1.0\r\n\r\n"],
  ["no Host", "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"],
  ["an unknown method", `BREW /healthz HTTP/1.1\r\n${host}\r\n`],
  ["an absolute request line", `GET http://halyard.test/healthz HTTP/1.1\r\n${host}\r\n`],
  ["an asterisk", `OPTIONS * HTTP/1.1\r\n${host}\r\n`],
  ["slashes at the start", `GET //healthz HTTP/1.1\r\n${host}\r\n`],
  ["dots in the path", `GET /api/v1/../v1/flags HTTP/1.1\r\n${host}\r\n`],
  ["a wrong escape in the path", `GET /api/v1/flags/%zz HTTP/1.1\r\n${host}\r\n`],
  ["a wrong escape in the query", `GET /api/v1/sdk/flags?user_id=%zz HTTP/1.1\r\n${host}\r\n`],
  ["a space in a header's name", `GET /healthz HTTP/1.1\r\n${host}a b: 1\r\n\r\n`],
  ["a folded header", `GET /healthz HTTP/1.1\r\n${host}a: 1\r\n b\r\n\r\n`],
  [largeHeaders, `GET /healthz HTTP/1.1\r\n${host}a: ${"x".repeat(70_000)}\r\n\r\n`],
  [
    "two lengths",
    `POST /api/v1/sdk/flags HTTP/1.1\r\n${host}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
  ],
  [
    "a length and chunks",
    `POST /api/v1/sdk/flags HTTP/1.1\r\n${host}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ],
  [
    "a chunk of no size",
    `POST /api/v1/sdk/flags HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n`,
  ],
  [
    "a coding beside chunked",
    `POST /api/v1/sdk/flags HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  ],
  [
    "a compressed body",
    `POST /api/v1/sdk/flags HTTP/1.1\r\n${host}Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}`,
  ],
  ["an upgrade", `GET /healthz HTTP/1.1\r\n${host}Upgrade: websocket\r\n\r\n`],
  [
    "an expectation",
    `POST /api/v1/sdk/flags HTTP/1.1\r\n${host}Expect: 100-continue\r\nContent-Length: 0\r\n\r\n`,
  ],
  ["an unknown expectation", `GET /healthz HTTP/1.1\r\n${host}Expect: tea\r\n\r\n`],
  ["a request id of one's own", `GET /api/v1/flags HTTP/1.1\r\n${host}X-Request-Id: mine\r\n\r\n`],
  ["a request id that is none", `GET /api/v1/flags HTTP/1.1\r\n${host}X-Request-Id: a b\r\n\r\n`],
];

/** Sends the requests to every process that listens. */
export async function sendMalformed(
  { note }: Transcript,
  { listeners, mask }: { listeners: readonly (readonly [string, string])[]; mask: Mask },
): Promise<void> {
  for (const [title, bytes] of requests) {
    const answers = new Map<string, string[]>();
    for (const [name, url] of listeners) {
      const shown = shownAnswer(readAnswer(await exchange(url, bytes)), mask);
      // These headers depend on whether the request line arrives in the same packet as the error.
      const answer =
        title === largeHeaders ? shown.replaceAll(/^Access-Control-.*\n/gm, "") : shown;
      answers.set(answer, [...(answers.get(answer) ?? []), name]);
    }
    for (const [answer, names] of answers) note(`${title}: ${names.join(", ")}`, answer);
  }
}
