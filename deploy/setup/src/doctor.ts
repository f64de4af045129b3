import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { ConfigurationError, natsServers } from "@halyard/configuration";
import { runCommand } from "@halyard/service";
import { checkCertificateFile } from "./doctor/check-certificates.ts";
import { checkDisk } from "./doctor/check-disk.ts";
import { checkGateway } from "./doctor/check-gateway.ts";
import { checkNats } from "./doctor/check-nats.ts";
import { checkPostgres } from "./doctor/check-postgres.ts";
import { type Config, readConfig } from "./doctor/config.ts";
import type { Finding } from "./doctor/finding.ts";

/** `npm run doctor`: checks a running system with credentials that can change nothing. */
const help = `Checks a running Halyard: PostgreSQL, its roles, grants and migrations, NATS, its rights and
streams, the processes that report, clocks, versions, certificates, disks, and keys that end
soon. Each line says what was checked. It changes nothing.

  npm run doctor              checks the system of npm start in HALYARD_HOME (default .halyard)
  npm run doctor -- --json    prints the findings as a JSON array
  npm run doctor -- --help    shows this help

For any other system, set in the environment (docs/configuration.md lists all variables):

  POSTGRES_URL           postgres://halyard_doctor:secret@host:5432/halyard
  NATS_URL               nats://host:4222, with NATS_USER=doctor, NATS_PASSWORD, NATS_TLS_CA_FILE
  JETSTREAM_REPLICAS     3 in a cluster of three NATS servers
  BASE_URL               https://flags.example.com

npm run setup makes the role from DOCTOR_PASSWORD.

Exit code
  0    nothing needs attention now; there can be warnings
  1    at least one problem was found
  2    the settings are invalid
`;

const problemExitCode = 1;

const { version } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
) as { version: string };

async function examine(config: Config): Promise<Finding[]> {
  const nowMs = () => Date.now();
  const certificates = [config.NATS_TLS_CA_FILE, config.NATS_TLS_CERT_FILE];
  const findings = await Promise.all([
    checkPostgres(config.POSTGRES_URL),
    checkNats({ nats: natsServers(config), replicas: config.JETSTREAM_REPLICAS, version }),
    config.BASE_URL === undefined ? [] : checkGateway(new URL(config.BASE_URL), nowMs),
    ...certificates.map((file) => (file === undefined ? [] : checkCertificateFile(file, nowMs()))),
    config.home === undefined ? [] : [checkDisk(config.home)],
  ]);
  return findings.flat();
}

const marks = { ok: "ok     ", warning: "WARNING", problem: "PROBLEM" } as const;

function print(findings: readonly Finding[]): void {
  for (const { status, check, text, advice } of findings) {
    process.stdout.write(`${marks[status]}  ${check}: ${text}\n`);
    if (advice !== undefined) process.stdout.write(`         ${advice}\n`);
  }
  const count = (wanted: Finding["status"]) =>
    findings.filter(({ status }) => status === wanted).length;
  process.stdout.write(
    `\n${findings.length} checks: ${count("problem")} problems, ${count("warning")} warnings\n`,
  );
}

function readArguments(): { help?: boolean; json?: boolean } {
  const options = { help: { type: "boolean", short: "h" }, json: { type: "boolean" } } as const;
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    throw new ConfigurationError([`${(error as Error).message} See --help.`]);
  }
}

await runCommand(async () => {
  const given = readArguments();
  if (given.help) {
    process.stdout.write(help);
    return;
  }
  const findings = await examine(readConfig());
  if (given.json) process.stdout.write(`${JSON.stringify(findings, null, 2)}\n`);
  else print(findings);
  if (findings.some(({ status }) => status === "problem")) process.exitCode = problemExitCode;
});
