import { once } from "node:events";
import { openAsBlob } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";

/**
 * A replacement for `curl` with the few options that the pages use. It is a server in this process, because starting a
 * Node.js process for each request takes longer than the request.
 */
type Curl = {
  /** Definition of a bash function that connects to the server. */
  shellFunction: string;
  close(): void;
};

/** Terminates each part of a request, which consists of the number of arguments and the arguments. */
const end = "\0";

export async function startCurl(): Promise<Curl> {
  const jars: Jars = new Map();
  const server = createServer((socket) => {
    // A shell that ends early closes its connection, and reports the failure itself.
    socket.on("error", () => undefined);
    void answer(socket, jars);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { shellFunction: shellFunction(port), close: () => server.close() };
}

/** Returns the bash function. The first line of a response is the exit code. */
function shellFunction(port: number): string {
  return `curl() {
    local code
    exec 9<>/dev/tcp/127.0.0.1/${port}
    printf '%s\\0' "$#" "$@" >&9
    IFS= read -r code <&9
    if [ "$code" = 0 ]; then cat <&9; else cat <&9 >&2; fi
    exec 9>&-
    return "$code"
  }`;
}

/** Cookies by the file in which curl would keep them. */
type Jars = Map<string, string>;

async function answer(socket: Socket, jars: Jars): Promise<void> {
  const { code, text } = await send(await readArguments(socket), jars).catch((error: Error) => ({
    code: 2,
    text: `curl: ${error.message}\n`,
  }));
  socket.end(`${code}\n${text}`);
}

async function readArguments(socket: Socket): Promise<string[]> {
  socket.setEncoding("utf8");
  let received = "";
  for await (const text of socket.iterator({ destroyOnReturn: false })) {
    received += text;
    const [count, ...args] = received.split(end);
    if (args.length > Number(count)) return args.slice(0, -1);
  }
  throw new Error("the connection closed before all arguments were received");
}

const methodWith = (data: string | undefined) => (data === undefined ? "GET" : "POST");

/** The statuses after which `curl --retry` sends a request again. */
const transient = new Set([408, 429, 500, 502, 503, 504]);

async function send(args: string[], jars: Jars): Promise<{ code: number; text: string }> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      silent: { type: "boolean", short: "s" },
      "show-error": { type: "boolean", short: "S" },
      fail: { type: "boolean", short: "f" },
      request: { type: "string", short: "X" },
      header: { type: "string", short: "H", multiple: true },
      data: { type: "string", short: "d" },
      cookie: { type: "string", short: "b" },
      "cookie-jar": { type: "string", short: "c" },
      "upload-file": { type: "string", short: "T" },
      "write-out": { type: "string", short: "w", default: "" },
      retry: { type: "string", default: "0" },
      "retry-delay": { type: "string", default: "1" },
    },
  });
  const [url] = positionals;
  if (url === undefined || positionals.length > 1) throw new Error("expected one URL");

  const headers = (values.header ?? []).map((header): [string, string] => {
    const colon = header.indexOf(":");
    return [header.slice(0, colon), header.slice(colon + 1).trim()];
  });
  const { data, cookie, "upload-file": file, "cookie-jar": jar } = values;
  if (cookie !== undefined) headers.push(["cookie", jars.get(cookie) ?? ""]);
  const sent = file === undefined ? data : await openAsBlob(file);
  const body = sent === undefined ? {} : { body: sent };
  const method = values.request ?? (file === undefined ? methodWith(data) : "PUT");
  const request = () => fetch(url, { method, headers, ...body });
  let response = await request();
  for (let left = Number(values.retry); left > 0 && transient.has(response.status); left -= 1) {
    await delay(Number(values["retry-delay"]) * 1000);
    response = await request();
  }
  const cookies = response.headers.getSetCookie().map((set) => set.split(";", 1)[0]);
  if (jar !== undefined) jars.set(jar, cookies.join("; "));
  if (values.fail && !response.ok)
    return { code: 22, text: `curl: (22) The requested URL returned error: ${response.status}\n` };
  const written = values["write-out"].replaceAll(String.raw`\n`, "\n");
  return { code: 0, text: `${await response.text()}${written}` };
}
