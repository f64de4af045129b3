import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { operatorToken, type Tenant } from "../system/tenancy.ts";
import { startCurl } from "./curl.ts";

/**
 * Runs the commands of a page as a reader does, one block after another in one shell. Variables and functions are kept
 * between blocks. `.halyard/demo.json` exists as `npm start` writes it. The machine needs bash but not curl, which a
 * replacement provides.
 */
export type PageShell = {
  /** Runs commands and returns their output. */
  run(commands: string): Promise<string>;
  close(): void;
};

/** The fields of `.halyard/demo.json` that pages read. */
export type Demo = {
  base_url: string;
  operator_token: string;
  project_id: string;
  environment_id: string;
  client_key: string;
  server_key: string;
  reader_key: string;
};

export function demoOf(tenant: Tenant, gatewayUrl: string): Demo {
  return {
    base_url: gatewayUrl,
    operator_token: operatorToken,
    project_id: tenant.projectId,
    environment_id: tenant.environmentId,
    client_key: tenant.clientKey,
    server_key: tenant.serverKey,
    reader_key: tenant.readerKey,
  };
}

export function openPageShell(demo: Demo): PageShell {
  const home = mkdtempSync(join(tmpdir(), "halyard-page-home-"));
  writeFileSync(join(home, "demo.json"), JSON.stringify(demo));
  const shell = openPageShellOn(home);
  return {
    run: shell.run,
    close() {
      shell.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Opens a shell on the home of a running `npm start`. */
export function openPageShellOn(home: string): PageShell {
  const directory = mkdtempSync(join(tmpdir(), "halyard-page-"));
  const state = join(directory, "state.sh");
  symlinkSync(home, join(directory, ".halyard"));
  const curl = startCurl();

  return {
    async run(commands) {
      const script = [
        "set -eua",
        existsSync(state) ? `. '${state}'` : "",
        (await curl).shellFunction,
        commands,
        `{ export -p; declare -f; } > '${state}'`,
      ].join("\n");
      const { stdout } = await promisify(execFile)("bash", ["-c", script], { cwd: directory });
      return stdout;
    },
    close() {
      void curl.then(({ close }) => close());
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
