import { createHmac } from "node:crypto";
import type { ReceivedRequest } from "@halyard/testing";
import { exchange, readAnswer, requestText } from "./http-exchange.ts";
import type { Mask } from "./mask.ts";
import { type Keys, shownAnswer, shownRequest, type Transcript } from "./transcript.ts";

const context = { id: "user-1", country: "DE", plan: "team", age: 40, email: "ada@corp.io" };
const inHeader = JSON.stringify(context);
const inBase64 = Buffer.from(inHeader).toString("base64");

/** Records SDK and OFREP requests in all their forms. */
export async function useSdk({ ask, group }: Transcript): Promise<void> {
  const flags = "/api/v1/sdk/flags";
  const evaluate = "/api/v1/sdk/evaluate";
  const first = await ask("flags of nobody", { as: "client", path: flags });
  const tag = /^etag: (.*)$/im.exec(first.head)?.[1] ?? "";
  const isFresh = { "If-None-Match": tag };
  await ask("flags that did not change", { as: "client", path: flags, headers: isFresh });
  await ask("the same by POST", {
    as: "client",
    method: "POST",
    path: flags,
    body: {},
    headers: isFresh,
  });
  await group("flags for one user in all forms", [
    { as: "client", method: "POST", path: flags, body: context },
    {
      as: "client",
      method: "POST",
      path: flags,
      body: { user: { id: "user-1", attributes: context } },
    },
    { as: "client", path: flags, headers: { "X-User-Context": inHeader } },
    { as: "client", path: flags, headers: { "X-User-Context": inBase64 } },
    {
      as: "client",
      path: `${flags}?user_id=user-1`,
      headers: { "X-User-Attributes": "country=DE,plan=team,age=40,email=ada@corp.io" },
    },
  ]);
  await group("evaluations", [
    { as: "client", path: `${evaluate}?key=checkout` },
    { as: "client", path: `${evaluate}?key=checkout&user_id=user-1` },
    {
      as: "client",
      path: `${evaluate}?key=search&explain=true`,
      headers: { "X-User-Context": inHeader },
    },
    {
      as: "server",
      path: `${evaluate}?key=search&explain=true`,
      headers: { "X-User-Context": inHeader },
    },
    { as: "client", method: "POST", path: `${evaluate}?key=search`, body: context },
    { as: "staging", method: "POST", path: `${evaluate}?key=search`, body: context },
    { as: "client", path: `${evaluate}?key=unknown` },
    { as: "client", path: `${evaluate}?key=no%20key` },
    { as: "client", path: evaluate },
  ]);
  await group("contexts that do not fit", [
    { as: "client", method: "POST", path: flags, body: { id: true } },
    { as: "client", method: "POST", path: flags, body: { user_id: {} } },
    { as: "client", method: "POST", path: flags, body: { country: { code: "DE" } } },
    { as: "client", method: "POST", path: flags, body: { countries: [null] } },
    { as: "client", method: "POST", path: flags, body: [] },
    { as: "client", method: "POST", path: flags, body: "{" },
    {
      as: "client",
      method: "POST",
      path: flags,
      body: "id=1",
      headers: { "Content-Type": "text/plain" },
    },
    { as: "client", path: flags, headers: { "X-User-Context": "{" } },
    { as: "client", path: flags, headers: { "X-User-Context": "%" } },
    { as: "client", path: `${flags}?unknown=1` },
    { as: "client", method: "POST", path: flags, body: { id: "x".repeat(70_000) } },
  ]);
  await useOfrep({ ask, group });
  await useRulesets({ ask, group });
}

async function useRulesets({ ask, group }: Pick<Transcript, "ask" | "group">): Promise<void> {
  const path = "/api/v1/sdk/ruleset?format=2";
  const first = await ask("rules", { as: "server", path });
  const tag = /^etag: (.*)$/im.exec(first.head)?.[1] ?? "";
  await ask("rules that did not change", {
    as: "server",
    path,
    headers: { "If-None-Match": tag },
  });
  await group("rules of other environments and keys", [
    { as: "staging", path },
    { as: "client", path },
    { as: "client", path: path.replace("?", "/stream?") },
    { as: "server", method: "POST", path, body: {} },
  ]);
}

async function useOfrep({ ask, group }: Pick<Transcript, "ask" | "group">): Promise<void> {
  const path = "/ofrep/v1/evaluate/flags";
  const bulk = {
    as: "client",
    method: "POST",
    path,
    body: { context: { targetingKey: "user-1" } },
  };
  const first = await ask("OFREP bulk", bulk);
  const tag = /^etag: (.*)$/im.exec(first.head)?.[1] ?? "";
  await ask("OFREP bulk that did not change", { ...bulk, headers: { "If-None-Match": tag } });
  const one = (key: string, body: unknown = { context }) => ({
    as: "client",
    method: "POST",
    path: `${path}/${key}`,
    body,
  });
  await group("OFREP single", [
    one("checkout"),
    one("search"),
    one("search", { context: { targetingKey: "user-1", id: true, nested: { a: 1 } } }),
    one("search", { context: { id: "user-1", list: ["a", null, {}] } }),
    one("unknown"),
    one("no%20key"),
    one("a/b"),
    one("", {}),
    one("search", { context: { targetingKey: 1 } }),
    one("search", { context: { user_id: true } }),
    one("search", { context: 1 }),
    one("search", []),
    one("search", "{"),
    { ...one("search"), as: undefined },
    { ...one("search"), as: undefined, headers: { Authorization: "Bearer hc_no" } },
    { ...one("search"), method: "GET", body: undefined },
    { as: "client", path: "/ofrep/v1/unknown" },
    { as: "client", path: "/ofrep/v1/" },
    { as: "client", path: "/ofrep/v2/evaluate/flags" },
  ]);
}

/** Records streams: their first frames, the event of a change, and a reconnection. */
export async function useStreams(
  { note }: Transcript,
  { url, keys, mask, change }: { url: string; keys: Keys; mask: Mask; change: () => Promise<void> },
): Promise<void> {
  const stream = async (
    title: string,
    asked: { as: string; path: string; headers?: Record<string, string> },
    { changes = false }: { changes?: boolean } = {},
  ) => {
    const headers = { Authorization: `Bearer ${keys[asked.as]}`, ...asked.headers };
    let hasChanged = false;
    const received = await exchange(url, requestText({ ...asked, headers }), (text) => {
      const isOpen = text.includes("event: heartbeat");
      if (isOpen && changes && !hasChanged) {
        hasChanged = true;
        void change();
      }
      if (!changes) return isOpen;
      return text.slice(text.indexOf("event: heartbeat")).includes("event: flags");
    });
    const answer = readAnswer(received);
    note(title, `${shownRequest(asked, mask)}\n\n${shownAnswer(answer, mask)}`);
    return answer;
  };
  const path = "/api/v1/sdk/stream";
  const asUser = { "X-User-Context": inHeader };
  const first = await stream("a stream", { as: "client", path, headers: asUser });
  const lastId = /^id: ?(.*)$/m.exec(first.body)?.[1] ?? "";
  await stream("a stream that comes back", {
    as: "client",
    path,
    headers: { ...asUser, "Last-Event-ID": lastId },
  });
  await stream("a change on a stream", { as: "client", path }, { changes: true });
  const rules = { as: "server", path: "/api/v1/sdk/ruleset/stream?format=2" };
  const firstRules = await stream("a stream of rules", rules);
  const lastRules = /^id: ?(.*)$/m.exec(firstRules.body)?.[1] ?? "";
  await stream("a stream of rules that comes back", {
    ...rules,
    headers: { "Last-Event-ID": lastRules },
  });
}

/** Records the requests that webhook receivers got. Signatures are verified and then masked. */
export function recordReceived(
  { note }: Transcript,
  { requests, secret, mask }: { requests: readonly ReceivedRequest[]; secret: string; mask: Mask },
): void {
  for (const { method, path, headers, raw } of requests) {
    const expected = createHmac("sha256", secret).update(raw).digest("hex");
    const signature = String(headers["x-service-signature"] ?? "");
    const verdict = signature === `sha256=${expected}` ? "valid" : `not valid: ${signature}`;
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    const head = [`${method} ${path}`, ...lines, `(the signature is ${verdict})`].join("\n");
    note("a customer's system received", mask(`${head}\n\n${raw.toString()}`));
  }
}
