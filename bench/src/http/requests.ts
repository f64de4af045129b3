export type RequestPlan = {
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  body?: string;
};

/** A placeholder in a plan. Each request has another number in its place, so that each one is from a new user. */
export const numberMark = "########";

/** Returns the plan with a number for its placeholder. */
export function numbered(plan: RequestPlan, number: number): RequestPlan {
  const digits = String(number).padStart(numberMark.length, "0");
  return JSON.parse(JSON.stringify(plan).replaceAll(numberMark, digits)) as RequestPlan;
}

export function authorized(key: string) {
  return { Authorization: `Bearer ${key}` };
}

export function jsonRequest(
  key: string,
  { method, path, body }: { method: string; path: string; body: object },
): RequestPlan {
  const headers = { ...authorized(key), "Content-Type": "application/json" };
  return { method, path, headers, body: JSON.stringify(body) };
}

export function requestBytes(plan: RequestPlan, host: string): Buffer {
  const headers = { Host: host, ...plan.headers };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const length =
    plan.body === undefined ? "" : `Content-Length: ${Buffer.byteLength(plan.body)}\r\n`;
  const head = `${plan.method} ${plan.path} HTTP/1.1\r\n${lines.join("")}${length}\r\n`;
  return Buffer.from(head + (plan.body ?? ""));
}

const digitZero = "0".charCodeAt(0);

/**
 * A request that is sent repeatedly with different numbers. It overwrites its bytes, so each connection needs its own.
 */
export function numberedRequest(bytes: Buffer): (number: number) => Buffer {
  const at = bytes.indexOf(numberMark);
  if (at < 0) return () => bytes;
  return (number) => {
    let rest = number;
    for (let index = at + numberMark.length - 1; index >= at; index -= 1) {
      bytes[index] = digitZero + (rest % 10);
      rest = Math.floor(rest / 10);
    }
    return bytes;
  };
}
