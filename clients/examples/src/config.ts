import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Address and keys of the system that `npm start` runs. */
export type Demo = {
  baseUrl: string;
  clientKey: string;
  readerKey: string;
  serverKey: string;
};

const defaultHome = fileURLToPath(new URL("../../../.halyard", import.meta.url));

/** Reads what `npm start` has written. Ends the process with a hint if nothing runs. */
export function readDemo(): Demo {
  const file = `${process.env.HALYARD_HOME ?? defaultHome}/demo.json`;
  try {
    const demo = JSON.parse(readFileSync(file, "utf8"));
    const { base_url: baseUrl, client_key: clientKey, server_key: serverKey } = demo;
    return { baseUrl, clientKey, readerKey: demo.reader_key, serverKey };
  } catch {
    console.error(`${file} cannot be read. Run \`npm start\` in another terminal first.`);
    process.exit(1);
  }
}

/** The port to listen on. 0 means any free port. */
export const port = Number(process.env.PORT ?? 4000);
