import { spawn } from "node:child_process";
import { describe, expect, it } from "@jest/globals";
import { startProgram } from "../src/program.ts";
import { readSuite } from "../src/suite.ts";

const main = new URL("../src/main.ts", import.meta.url).pathname;

/** Runs the command with a program in JavaScript as its evaluator. */
async function runCommand(program: string, ...options: string[]) {
  return run([...options, "--", process.execPath, "--input-type=module", "--eval", program]);
}

async function run(args: string[]) {
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const exitCode = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { exitCode, output, errors };
}

/** A program that replies to each request with the value of an expression. */
const replying = (expression: string) => `
  import { createInterface } from "node:readline";
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    console.log(JSON.stringify({ id: request.id, ...(${expression}) }));
  }
`;

const disabled = '{ result: { value: false, variation: "off", reason: "disabled" } }';
const unlessEvaluate = "{ unsupported: true }";

describe("given a program that evaluates wrongly", () => {
  it("prints expected and received results, counts the rest, and exits with 1", async () => {
    const { exitCode, output } = await runCommand(
      replying(`request.op === "evaluate" ? ${disabled} : ${unlessEvaluate}`),
    );
    expect(output).toContain(
      'expected  {"value":true,"variation":"on","reason":"targeting_match"}',
    );
    expect(output).toContain('received  {"value":false,"variation":"off","reason":"disabled"}');
    expect(output).toMatch(/\d+ more failed checks; --all prints them\./);
    expect(output).toMatch(/Unsupported by the evaluator: .*hash \(\d+ requests\)/);
    expect(output).toMatch(/Conformance suite \S+: \d+ cases passed, \d+ failed, \d+ skipped\n$/);
    expect(exitCode).toBe(1);
  });
});

describe("given a program that reports errors", () => {
  it("fails these cases with the message", async () => {
    const { exitCode, output } = await runCommand(replying('{ error: "out of memory" }'));
    expect(output).toContain("received  error: out of memory");
    expect(exitCode).toBe(1);
  });
});

describe("given a program that cannot continue", () => {
  it.each([
    ["cannot be started", ["--", "/no/such/program"], "The program could not be started"],
    ["ends", ["--", process.execPath, "--eval", "process.exit(7)"], "ended with exit code 7"],
    [
      "replies with something else",
      ["--", process.execPath, "--eval", 'console.log("hello")'],
      "Received: hello",
    ],
    [
      "does not reply",
      ["--timeout", "0.2", "--", process.execPath, "--eval", "setInterval(() => {}, 1000)"],
      "No reply within 0.2 s",
    ],
  ])("stops at the case and exits with 3 if it %s", async (_, args, problem) => {
    const { exitCode, output } = await run(args);
    const first = readSuite().files[0];
    expect(output).toContain(`Stopped at ${first?.path}: ${first?.cases[0]?.name}\n`);
    expect(output).toContain(problem);
    expect(exitCode).toBe(3);
  });

  it("ends although a child of the program keeps its output open", async () => {
    const { exitCode } = await run(["--timeout", "0.2", "--", "sh", "-c", "sleep 5 & sleep 5"]);
    expect(exitCode).toBe(3);
  });
});

describe("given a reply to another request", () => {
  it("stops, because later replies might belong to other requests", async () => {
    const program = startProgram({
      command: process.execPath,
      args: ["--eval", 'process.stdin.once("data", () => console.log(\'{"id":2,"result":1}\'))'],
      timeoutMs: 10_000,
    });
    const check = readSuite().files[0]?.cases[0]?.checks[0];
    if (check === undefined) throw new Error("The suite has no cases.");
    expect(await program.answer(check)).toEqual({
      stopped: expect.stringContaining('expected one line of JSON with "id":1'),
    });
    await program.close();
  });
});

describe("given the command line", () => {
  it("prints the help", async () => {
    const { exitCode, output } = await run(["--help"]);
    expect(output).toContain("halyard-conformance [options] -- <command");
    expect(exitCode).toBe(0);
  });

  it.each([
    [[], "Expected the command that starts the evaluator."],
    [["--wrong"], "Unknown option"],
    [["--timeout", "soon", "--", "true"], "Invalid --timeout: expected a number of seconds."],
  ])("rejects %j", async (args, problem) => {
    const { exitCode, errors } = await run(args);
    expect(errors).toContain(problem);
    expect(exitCode).toBe(2);
  });
});
