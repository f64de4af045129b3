import type { RequestPlan } from "./load.ts";

/** A request as it goes over the wire. */
export function requestBytes(plan: RequestPlan, host: string): Buffer {
  const headers = { Host: host, ...plan.headers };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const length =
    plan.body === undefined ? "" : `Content-Length: ${Buffer.byteLength(plan.body)}\r\n`;
  const head = `${plan.method} ${plan.path} HTTP/1.1\r\n${lines.join("")}${length}\r\n`;
  return Buffer.from(head + (plan.body ?? ""));
}
