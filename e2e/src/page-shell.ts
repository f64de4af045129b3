import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Tenant } from "./tenancy.ts";

/**
 * Runs the commands of a page as a reader would, one block after another in one terminal: variables
 * stay from block to block. Where the page has the address of `npm start`, the test's own is used, and
 * what `npm start` writes into `.halyard/demo.json` is there. The machine needs a shell but no curl: a
 * stand-in sends what curl would.
 */
export type PageShell = {
  /** Answers what the commands print. */
  run(commands: string): Promise<string>;
  close(): void;
};

/** What pages read of `.halyard/demo.json`. */
export type Demo = {
  base_url: string;
  project_id: string;
  environment_id: string;
  client_key: string;
  server_key: string;
};

export function demoOf(tenant: Tenant, gatewayUrl: string): Demo {
  return {
    base_url: gatewayUrl,
    project_id: tenant.projectId,
    environment_id: tenant.environmentId,
    client_key: tenant.clientKey,
    server_key: tenant.serverKey,
  };
}

const addressOfPages = "http://127.0.0.1:8080";
const standIn = fileURLToPath(new URL("curl.ts", import.meta.url));

export function openPageShell(demo: Demo): PageShell {
  const directory = mkdtempSync(join(tmpdir(), "halyard-page-"));
  const variables = join(directory, "variables.sh");
  mkdirSync(join(directory, ".halyard"));
  writeFileSync(join(directory, ".halyard/demo.json"), JSON.stringify(demo));

  return {
    async run(commands) {
      const script = [
        "set -eua",
        existsSync(variables) ? `. '${variables}'` : "",
        `curl() { '${process.execPath}' '${standIn}' "$@"; }`,
        commands.replaceAll(addressOfPages, demo.base_url),
        `export -p > '${variables}'`,
      ].join("\n");
      const { stdout } = await promisify(execFile)("sh", ["-c", script], { cwd: directory });
      return stdout;
    },
    close: () => rmSync(directory, { recursive: true, force: true }),
  };
}
