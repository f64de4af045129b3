import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { sendConfirmed } from "../src/api/confirmed.ts";

const tooOld = () =>
  Response.json(
    { error: { code: "AUTH_003", category: "AUTH", status: 403, message: "old" } },
    { status: 403 },
  );
const done = () => Response.json({}, { status: 201 });

/** Replaces the network by responses in their order. Returns the requests. */
function answerWith(responses: (() => Response)[]) {
  const sent: { key: string | null; body: string }[] = [];
  jest.spyOn(globalThis, "fetch").mockImplementation(async (input) => {
    const request = input as Request;
    sent.push({ key: request.headers.get("idempotency-key"), body: await request.text() });
    return (responses.shift() ?? done)();
  });
  return sent;
}

const request = () =>
  new Request("http://localhost/api/v1/things", {
    method: "POST",
    headers: { "Idempotency-Key": "key-1" },
    body: "content",
  });

describe("a request that needs a recent sign-in", () => {
  beforeEach(() => {
    jest.useFakeTimers({ advanceTimers: true });
  });
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it("is sent again with its key and content after the confirmation", async () => {
    const sent = answerWith([tooOld, done]);
    const response = await sendConfirmed(request(), async () => true);
    expect(response.status).toBe(201);
    expect(sent).toEqual([
      { key: "key-1", body: "content" },
      { key: "key-1", body: "content" },
    ]);
  });

  it("is sent again to a process that learns of the confirmation a moment later", async () => {
    const sent = answerWith([tooOld, tooOld, tooOld, done]);
    expect((await sendConfirmed(request(), async () => true)).status).toBe(201);
    expect(sent).toHaveLength(4);
  });

  it("is not sent again without the confirmation", async () => {
    const sent = answerWith([tooOld]);
    expect((await sendConfirmed(request(), async () => false)).status).toBe(403);
    expect(sent).toHaveLength(1);
  });

  it("asks once, even if no repetition succeeds", async () => {
    answerWith([tooOld, tooOld, tooOld, tooOld]);
    const confirm = jest.fn(async () => true);
    expect((await sendConfirmed(request(), confirm)).status).toBe(403);
    expect(confirm).toHaveBeenCalledTimes(1);
  });

  it("asks nothing for another problem, and nothing of a key", async () => {
    answerWith([() => Response.json({ error: { code: "AUTH_002" } }, { status: 403 }), tooOld]);
    const confirm = jest.fn(async () => true);
    await sendConfirmed(request(), confirm);
    await sendConfirmed(request());
    expect(confirm).not.toHaveBeenCalled();
  });
});
