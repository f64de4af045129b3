import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Returns the path of a program in the directories of a search path such as PATH. */
export function locateProgram(name: string, searchPath: string): string | undefined {
  const candidates = searchPath.split(delimiter).map((directory) => join(directory, name));
  return candidates.find((location) => existsSync(location));
}

/** Package managers with a nats-server that works with Halyard. */
const packageManagers = [
  { program: "brew", command: "brew install nats-server" },
  { program: "apt-get", command: "sudo apt-get install nats-server" },
  { program: "dnf", command: "sudo dnf install nats-server" },
  { program: "apk", command: "apk add nats-server" },
];

const releases = "https://github.com/nats-io/nats-server/releases";

/** Returns the ways to install a nats-server on this machine, and the ways to run Halyard without installing it. */
export function natsServerAdvice(options: {
  searchPath: string;
  platform: NodeJS.Platform;
}): string {
  const isHere = ({ program }: { program: string }) =>
    locateProgram(program, options.searchPath) !== undefined ||
    (program === "brew" && options.platform === "darwin");
  const command = packageManagers.find(isHere)?.command;
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
