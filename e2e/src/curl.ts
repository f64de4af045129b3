import { parseArgs } from "node:util";

/** Sends what `curl` would for the few options that the pages use, and prints the answer's body. */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    silent: { type: "boolean", short: "s" },
    request: { type: "string", short: "X" },
    header: { type: "string", short: "H", multiple: true },
    data: { type: "string", short: "d" },
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
const answer = await fetch(url, { method, headers, ...body });
process.stdout.write(await answer.text());
