import type { RequestPlan } from "./load.ts";
import { openRawConnection } from "./raw-connection.ts";
import { requestBytes } from "./request-bytes.ts";

/** A parsed HTTP response. */
export type CapturedAnswer = {
  status: number;
  statusText: string;
  /** Alternating names and values, in the order of the response. */
  headers: readonly string[];
  body: Buffer;
};

export async function captureAnswer(url: string, plan: RequestPlan): Promise<CapturedAnswer> {
  const { hostname, port } = new URL(url);
  const captured = Promise.withResolvers<Buffer>();
  const connection = openRawConnection(
    { host: hostname, port: Number(port) },
    {
      onOpen: () => connection.send(requestBytes(plan, `${hostname}:${port}`)),
      onAnswer: (_status, answer) => captured.resolve(Buffer.from(answer)),
      onFailure: captured.reject,
    },
  );
  try {
    return parse(await captured.promise);
  } finally {
    connection.close();
  }
}

export function headerOf({ headers }: CapturedAnswer, name: string): string {
  for (let at = 0; at < headers.length; at += 2)
    if (headers[at]?.toLowerCase() === name) return headers[at + 1] ?? "";
  return "";
}

/** Returns the headers without the given names, which are in lower case. */
export function headersWithout({ headers }: CapturedAnswer, names: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at < headers.length; at += 2) {
    const [name = "", value = ""] = headers.slice(at, at + 2);
    if (!names.includes(name.toLowerCase())) kept.push(name, value);
  }
  return kept;
}

function parse(answer: Buffer): CapturedAnswer {
  const headLength = answer.indexOf("\r\n\r\n");
  const [statusLine = "", ...lines] = answer.toString("latin1", 0, headLength).split("\r\n");
  const headers = lines.flatMap((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  const [, status, ...statusText] = statusLine.split(" ");
  return {
    status: Number(status),
    statusText: statusText.join(" "),
    headers,
    body: answer.subarray(headLength + 4),
  };
}
