import type { Socket } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterEach, describe, expect, it } from "@jest/globals";
import { createSend } from "../../src/sending/send.ts";
import { answerOk, createClosing, startRawTarget } from "./raw-target.ts";
import { makeTestCertificate } from "./test-certificate.ts";

const trustedBefore = getCACertificates("default");
const { closing, closeAll } = createClosing();
const certificate = await makeTestCertificate("receiver.test");
afterEach(async () => {
  setDefaultCACertificates(trustedBefore);
  await closeAll();
});
const trust = () => setDefaultCACertificates([...trustedBefore, certificate.cert]);

async function sendTo(
  name: string,
  options: { plain?: boolean; onRequest?: (socket: Socket) => void } = {},
) {
  const target = closing(
    await startRawTarget({
      onRequest: options.onRequest ?? answerOk,
      ...(options.plain ? {} : { certificate }),
    }),
  );
  const sender = closing(
    createSend({
      rules: { httpsOnly: true, allowPrivate: true },
      resolve: async () => [{ address: "127.0.0.1", family: 4 }],
    }),
  );
  const url = `https://${name}:${target.port}/`;
  const send = () => sender.send({ url, headers: {}, body: "{}" });
  return { send, target };
}

describe("a target with TLS", () => {
  it("receives requests if its certificate is trusted and matches its name", async () => {
    trust();
    const { send, target } = await sendTo("receiver.test");
    expect(await send()).toMatchObject({ kind: "answered", status: 200 });
    expect(await send()).toMatchObject({ kind: "answered", status: 200 });
    expect(target.connections).toHaveLength(1);
  });

  it("receives a request again if it closes a reused connection", async () => {
    trust();
    const answered = new WeakSet<Socket>();
    const { send, target } = await sendTo("receiver.test", {
      onRequest(socket) {
        if (answered.has(socket)) return void socket.end();
        answered.add(socket);
        answerOk(socket);
      },
    });
    expect(await send()).toMatchObject({ kind: "answered", status: 200 });
    expect(await send()).toMatchObject({ kind: "answered", status: 200 });
    expect(target.requests).toHaveLength(3);
  });

  it("may have a name with a trailing dot", async () => {
    trust();
    const { send } = await sendTo("receiver.test.");
    expect(await send()).toMatchObject({ kind: "answered", status: 200 });
  });

  it.each(["other.test", "127.0.0.1", "sub.receiver.test"])(
    "receives nothing as %s if its certificate is for another name",
    async (name) => {
      trust();
      const { send, target } = await sendTo(name);
      expect(await send()).toMatchObject({ error: "TLS: certificate is for another name" });
      expect(target.requests).toEqual([]);
    },
  );

  it("receives nothing if its certificate is self-signed", async () => {
    const { send, target } = await sendTo("receiver.test");
    expect(await send()).toMatchObject({
      kind: "failed",
      error: "TLS: self-signed certificate",
      timedOut: false,
    });
    expect(target.requests).toEqual([]);
  });

  it("fails at the time limit if it does not complete the handshake", async () => {
    const target = closing(await startRawTarget({ onRequest: () => undefined }));
    const rules = { httpsOnly: true, allowPrivate: true };
    const sender = closing(createSend({ rules, timeoutMs: 500 }));
    const url = `https://127.0.0.1:${target.port}/`;
    const result = await sender.send({ url, headers: {}, body: "{}" });
    expect(result).toMatchObject({ error: "time-out after 0.5 s", timedOut: true });
  });

  it("receives nothing if it does not use TLS", async () => {
    const { send } = await sendTo("receiver.test", { plain: true });
    expect(await send()).toMatchObject({ kind: "failed", error: "TLS: handshake failed" });
  });
});
