import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";

/** Runs the units of a directory as systemd does, without its users and its sandbox. */
export type Units = {
  /** Carries out the arguments of a `systemctl` command. */
  systemctl(args: readonly string[]): Promise<void>;
  /** Returns the process of a running unit. */
  pid(unit: string): number | undefined;
  /** Returns the end of the log of a unit. */
  log(unit: string): string;
  close(): Promise<void>;
};

type Unit = { command: readonly string[]; environment: NodeJS.Dict<string>; killSignal: string };

/** Reads a unit with its drop-ins. A setting occurs once, except for the lines that no test needs. */
function readUnit(directory: string, name: string): Unit {
  const files = globSync([`${name}.service`, `${name}.service.d/*.conf`], { cwd: directory });
  const text = files.map((file) => readFileSync(join(directory, file), "utf8")).join("\n");
  const setting = (key: string) => new RegExp(`^${key}=(.*)$`, "m").exec(text)?.[1] ?? "";
  const [credential, file = ""] = setting("LoadCredential").split(":");
  const environment = setting("Environment")
    .replace(`%d/${credential}`, file)
    .replaceAll(/ (?=[A-Z_]+=)/g, "\n");
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
      // Only the unit of HAProxy can reload.
      if (action === "reload") for (const name of names) running.get(name)?.child.kill("SIGUSR2");
      if (action === "stop" || action === "restart") await Promise.all(names.map(stop));
      if (action !== "stop") names.forEach(start);
    },
    pid: (name) => running.get(name)?.child.pid,
    log: (name) => readFileSync(logFile(name), "utf8").slice(-2_000),
    async close() {
      await Promise.all([...running.keys()].map(stop));
    },
  };
}
