import { UnavailableError } from "@halyard/http";
import { describe, expect, it } from "@jest/globals";
import { createLogger, type Logger } from "../src/logger.ts";

/** A mark in all texts of an error, in place of a row, a URL or an input. */
const mark = "s3cret-mark";

function logged(log: (logger: Logger) => void): { text: string; line: Record<string, never> } {
  let text = "";
  const destination = {
    write: (chunk: string) => {
      text += chunk;
    },
  };
  log(createLogger({ service: "test", level: "trace", destination }));
  return { text, line: JSON.parse(text) };
}

/** An error like those of libraries, with all details as members. */
function fullError(): Error {
  const cause = Object.assign(new TypeError(`cause ${mark}`), { input: mark });
  const error = new Error(`first line ${mark}\n    at ${mark} (file:///${mark}:1:1)`, { cause });
  return Object.assign(error, {
    detail: `Key (email)=(${mark}) already exists.`,
    hint: mark,
    where: mark,
    query: `select '${mark}'`,
    parameters: [mark],
    options: { url: new URL(`https://user:${mark}@example.com/?token=${mark}`) },
    rawPacket: Buffer.from(mark),
    response: { body: mark },
    code: "23505",
    severity: "ERROR",
    routine: "_bt_check_unique",
    table: "users",
    constraint: "users_email",
  });
}

const withMessage = () => Object.assign(new Error(), { message: `changed ${mark}` });
const withName = () => Object.assign(new Error(mark), { name: `Error of ${mark}` });
const withCode = () => Object.assign(new Error(mark), { code: `the code ${mark}` });

describe.each([
  ["a full error", fullError],
  ["an error with a later message", withMessage],
  ["an error with a text as its name", withName],
  ["an error with a text as its code", withCode],
  ["several errors", () => new AggregateError([fullError(), fullError()], mark)],
])("given %s", (_name, make) => {
  it.each<[string, (logger: Logger) => void]>([
    ["under err", (logger) => logger.error({ err: make() }, "failed")],
    ["under error", (logger) => logger.error({ error: make() }, "failed")],
    ["under another name", (logger) => logger.error({ reason: make() }, "failed")],
    ["without a message", (logger) => logger.error({ err: make() })],
    ["alone", (logger) => logger.error(make())],
    ["before a message", (logger) => logger.error(make(), "failed")],
    ["in a child", (logger) => logger.child({ queue: "q" }).error({ err: make() }, "failed")],
  ])("logs none of its texts: %s", (_where, log) => {
    const { text } = logged(log);
    expect(text).not.toContain(mark);
    expect(text).toContain("error-logs.test.ts");
  });
});

describe("given an error", () => {
  it("logs its type, code, database objects, stack frames and cause", () => {
    const { line } = logged((logger) => logger.error({ err: fullError() }, "failed"));
    expect(line.err).toEqual({
      type: "Error",
      code: "23505",
      severity: "ERROR",
      routine: "_bt_check_unique",
      table: "users",
      constraint: "users_email",
      stack: expect.arrayContaining([expect.stringContaining("error-logs.test.ts:")]),
      cause: { type: "TypeError", stack: expect.any(Array) },
    });
  });

  it("logs the message of an error that declares its message as safe", () => {
    const error = new UnavailableError("the directory is not read yet");
    const { line } = logged((logger) => logger.error({ err: error }, "failed"));
    expect(line.err).toMatchObject({ message: "the directory is not read yet" });
  });

  it("logs the type of another thrown value", () => {
    const { line } = logged((logger) => logger.error({ err: mark }, "failed"));
    expect(line.err).toEqual({ type: "string" });
  });

  it("ends a cyclic chain of causes", () => {
    const error = new Error("cycle");
    error.cause = error;
    expect(logged((logger) => logger.error({ err: error }, "failed")).text).toContain("failed");
  });

  it("does not change other fields and messages", () => {
    const { line } = logged((logger) => logger.info({ count: 3 }, "counted"));
    expect(line).toMatchObject({ count: 3, msg: "counted", level: "info" });
  });
});
