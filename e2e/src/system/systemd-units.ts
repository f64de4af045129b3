import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";

/** Runs the units of a directory as systemd does, without its users and its sandbox. */
export type Units = {
  /** Carries out the arguments of a `systemctl` command. */
  systemctl(args: readonly string[]): Promise<void>;
  /** Returns the end of the log of a unit. */
  log(unit: string): string;
  close(): Promise<void>;
};

type Unit = { command: readonly string[]; environment: NodeJS.Dict<string>; killSignal: string };

/** Reads a unit. A setting occurs once, except for the lines that no test needs. */
function readUnit(directory: string, name: string): Unit {
  const text = readFileSync(join(directory, `${name}.service`), "utf8");
  const setting = (key: string) => new RegExp(`^${key}=(.*)$`, "m").exec(text)?.[1] ?? "";
  const environment = setting("Environment").replaceAll(/ (?=[A-Z_]+=)/g, "\n");
  return {
    command: setting("ExecStart").split(" "),
    environment: {
      ...parseEnv(environment),
      ...parseEnv(readFileSync(setting("EnvironmentFile"), "utf8")),
    },
    killSignal: setting("KillSignal"),
  };
}

export function runUnits(options: {
  directory: string;
  workingDirectory: string;
  environment: NodeJS.Dict<string>;
}): Units {
  const { directory, workingDirectory, environment } = options;
  const running = new Map<string, { child: ChildProcess; killSignal: string }>();
  const logFile = (name: string) => join(directory, `${name}.log`);

  function start(name: string): void {
    if (running.has(name)) return;
    const unit = readUnit(directory, name);
    const [program = "", ...args] = unit.command;
    const log = openSync(logFile(name), "a");
    const child = spawn(program, args, {
      cwd: workingDirectory,
      env: { PATH: process.env.PATH, ...environment, ...unit.environment },
      stdio: ["ignore", log, log],
    });
    running.set(name, { child, killSignal: unit.killSignal });
  }

  async function stop(name: string): Promise<void> {
    const process = running.get(name);
    running.delete(name);
    if (process === undefined || process.child.exitCode !== null) return;
    const exited = once(process.child, "exit");
    process.child.kill(process.killSignal as NodeJS.Signals);
    await exited;
  }

  return {
    async systemctl([action, ...rest]) {
      const names = rest.filter((name) => name.startsWith("halyard-"));
      if (action === "stop") await Promise.all(names.map(stop));
      else names.forEach(start);
    },
    log: (name) => readFileSync(logFile(name), "utf8").slice(-2_000),
    async close() {
      await Promise.all([...running.keys()].map(stop));
    },
  };
}
