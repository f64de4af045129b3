import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterEach, describe, expect, it } from "@jest/globals";
import type { SendResult } from "../../src/sending/send.ts";
import { answerOk, createClosing, startRawTarget } from "./raw-target.ts";
import { makeTestCertificate } from "./test-certificate.ts";

/** Environment variables of Node.js that apply to all requests of a process, and must not apply to webhooks. */
const { closing, closeAll } = createClosing();
afterEach(closeAll);

/** Sends a request from a new process, because Node.js reads some variables only at its start. */
async function sendInProcess(url: string, env: Record<string, string>): Promise<SendResult> {
  const script = `
    const [sendUrl, url] = process.argv.slice(1);
    const { createSend } = await import(sendUrl);
    const { send, close } = createSend({ rules: { httpsOnly: false, allowPrivate: true } });
    console.log(JSON.stringify(await send({ url, headers: {}, body: "{}" })));
    await close();`;
  const sendUrl = new URL("../../src/sending/send.ts", import.meta.url).href;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "--eval", script, sendUrl, url],
    { env: { ...process.env, ...env } },
  );
  return JSON.parse(stdout);
}

describe("the environment", () => {
  it("cannot route requests through a proxy", async () => {
    const proxy = closing(await startRawTarget({ onRequest: answerOk }));
    const target = closing(await startRawTarget({ onRequest: answerOk }));
    const proxyUrl = `http://127.0.0.1:${proxy.port}`;
    const result = await sendInProcess(`http://127.0.0.1:${target.port}/`, {
      NODE_USE_ENV_PROXY: "1",
      HTTP_PROXY: proxyUrl,
      http_proxy: proxyUrl,
      HTTPS_PROXY: proxyUrl,
      ALL_PROXY: proxyUrl,
      NO_PROXY: "",
      no_proxy: "",
    });
    expect(result).toMatchObject({ kind: "answered", status: 200 });
    expect(target.requests).toHaveLength(1);
    expect(proxy.connections).toHaveLength(0);
  });

  it("cannot disable the verification of certificates", async () => {
    const certificate = await makeTestCertificate("localhost");
    const target = closing(await startRawTarget({ onRequest: answerOk, certificate }));
    const result = await sendInProcess(`https://localhost:${target.port}/`, {
      NODE_TLS_REJECT_UNAUTHORIZED: "0",
    });
    expect(result).toMatchObject({ kind: "failed", error: "TLS: self-signed certificate" });
    expect(target.requests).toEqual([]);
  });
});
