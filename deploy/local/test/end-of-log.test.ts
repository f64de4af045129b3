import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { endOfLog } from "../src/process-end.ts";
import { throwawayDirectories } from "./throwaway.ts";

const throwawayDirectory = throwawayDirectories();

describe("given a service whose sources have a syntax error", () => {
  it("shows the error with its file and line, not only the end of its stack", () => {
    const directory = throwawayDirectory();
    const program = join(directory, "main.ts");
    const logFile = join(directory, "service.log");
    writeFileSync(program, "const port: number = 1;\nconst x = = 3;\n");
    const { stderr } = spawnSync(process.execPath, [program], { encoding: "utf8" });
    writeFileSync(logFile, stderr);

    const shown = endOfLog(logFile);

    expect(shown).toContain(`${program}:2`);
    expect(shown).toContain("const x = = 3;");
    expect(shown).toContain("SyntaxError");
  });
});
