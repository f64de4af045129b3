import { locateProgram } from "./locate-program.ts";

/** Package managers whose repositories have a nats-server that Halyard runs with. */
const PACKAGE_MANAGERS = [
  { program: "brew", command: "brew install nats-server" },
  { program: "apt-get", command: "sudo apt-get install nats-server" },
  { program: "dnf", command: "sudo dnf install nats-server" },
  { program: "apk", command: "apk add nats-server" },
];

const RELEASES = "https://github.com/nats-io/nats-server/releases";

/** Returns the ways to get a nats-server on this machine, its own package manager first, and the way without. */
export function natsServerAdvice(options: {
  searchPath: string;
  platform: NodeJS.Platform;
}): string {
  const { searchPath, platform } = options;
  const onThisMachine = ({ program }: { program: string }) =>
    locateProgram(program, searchPath) !== undefined ||
    (program === "brew" && platform === "darwin");
  const command = PACKAGE_MANAGERS.find(onThisMachine)?.command;
  return [
    ...(command === undefined ? [] : ["Install it, then start again:", `  ${command}`]),
    `${command === undefined ? "Unpack" : "Or unpack"} a release onto your PATH: ${RELEASES}`,
    "Or run all of Halyard in containers:",
    "  sh deploy/docker/generate-env > .env",
    "  docker compose up",
    "Or name a NATS server of your own, with JetStream:",
    "  NATS_URL=nats://127.0.0.1:4222 npm start",
  ].join("\n");
}
