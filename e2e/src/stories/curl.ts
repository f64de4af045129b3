import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";

/** Sends what `curl` would for the few options that the pages use, and prints the answer's body. */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    silent: { type: "boolean", short: "s" },
    fail: { type: "boolean", short: "f" },
    request: { type: "string", short: "X" },
    header: { type: "string", short: "H", multiple: true },
    data: { type: "string", short: "d" },
    retry: { type: "string", default: "0" },
    "retry-delay": { type: "string", default: "1" },
  },
});
const [url] = positionals;
if (url === undefined || positionals.length > 1) throw new Error("one address");

const headers = (values.header ?? []).map((header): [string, string] => {
  const colon = header.indexOf(":");
  return [header.slice(0, colon), header.slice(colon + 1).trim()];
});
const body = values.data === undefined ? {} : { body: values.data };
const method = values.request ?? (values.data === undefined ? "GET" : "POST");

/** The statuses after which `curl --retry` sends a request again. */
const transient = new Set([408, 429, 500, 502, 503, 504]);
const send = () => fetch(url, { method, headers, ...body });
let answer = await send();
for (let left = Number(values.retry); left > 0 && transient.has(answer.status); left -= 1) {
  await delay(Number(values["retry-delay"]) * 1000);
  answer = await send();
}
if (values.fail && !answer.ok) process.exitCode = 22;
else process.stdout.write(await answer.text());
