import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Returns the path of a program in the directories of a search path such as PATH. */
export function locateProgram(name: string, searchPath: string): string | undefined {
  const candidates = searchPath.split(delimiter).map((directory) => join(directory, name));
  return candidates.find((location) => existsSync(location));
}

/** Package managers whose servers work with Halyard, with the command that installs a package. */
const packageManagers = [
  { program: "brew", command: "brew install" },
  { program: "apt-get", command: "sudo apt-get install" },
  { program: "dnf", command: "sudo dnf install" },
  { program: "apk", command: "apk add" },
];

type Machine = { searchPath: string; platform: NodeJS.Platform };

function installCommand(name: string, { searchPath, platform }: Machine): string | undefined {
  const manager = packageManagers.find(
    ({ program }) =>
      locateProgram(program, searchPath) !== undefined ||
      (program === "brew" && platform === "darwin"),
  );
  return manager && `${manager.command} ${name}`;
}

const releases = "https://github.com/nats-io/nats-server/releases";

/** Returns the ways to install a nats-server on this machine, and the ways to run Halyard without installing it. */
export function natsServerAdvice(machine: Machine): string {
  const command = installCommand("nats-server", machine);
  return [
    ...(command === undefined ? [] : ["Install it, then start again:", `  ${command}`]),
    `${command === undefined ? "Unpack" : "Or unpack"} a release onto your PATH: ${releases}`,
    "Or run all of Halyard in containers:",
    "  sh deploy/docker/generate-env > .env",
    "  docker compose up",
    "Or name a NATS server of your own, with JetStream:",
    "  NATS_URL=nats://127.0.0.1:4222 npm start",
  ].join("\n");
}

export function haproxyAdvice(machine: Machine): string {
  const advice = packageAdvice("haproxy", machine);
  return `${advice}\nOr unset HALYARD_GATEWAY to use the built-in proxy.`.trimStart();
}

/** Returns how to install a package on this machine; empty without a known package manager. */
export function packageAdvice(name: string, machine: Machine): string {
  const command = installCommand(name, machine);
  return command === undefined ? "" : `Install it, then start again:\n  ${command}`;
}
