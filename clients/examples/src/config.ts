import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Address and keys of the system that `npm start` runs. */
export type Demo = { baseUrl: string; clientKey: string; serverKey: string };

const defaultHome = fileURLToPath(new URL("../../../.halyard", import.meta.url));

/** Reads what `npm start` has written. Ends the process with a hint if nothing runs. */
export function readDemo(): Demo {
  const file = `${process.env.HALYARD_HOME ?? defaultHome}/demo.json`;
  try {
    const { base_url, client_key, server_key } = JSON.parse(readFileSync(file, "utf8"));
    return { baseUrl: base_url, clientKey: client_key, serverKey: server_key };
  } catch {
    console.error(`${file} cannot be read. Run \`npm start\` in another terminal first.`);
    process.exit(1);
  }
}

/** The port to listen on. 0 means any free port. */
export const port = Number(process.env.PORT ?? 4000);
