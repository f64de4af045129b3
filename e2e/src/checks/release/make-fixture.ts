import { readFileSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { flagEventsStream, quotaBucket, snapshotBucket } from "@halyard/contracts";
import { startReceiver } from "@halyard/testing";
import { type Demo, type Launched, launch } from "../../system/launched.ts";
import { must } from "../../system/tenancy.ts";
import { readAll } from "../agreement.ts";
import { awaitCounted, awaitDelivery, fillRelease } from "./fill-release.ts";
import { recordExchanges } from "./record-exchanges.ts";
import { fixtureFiles, fixtureFolder, homeFiles, restoreHome } from "./release-fixture.ts";
import { saveHome } from "./save-home.ts";

/**
 * Makes the fixture of a release. Starts the checkout of the release, fills it through its public API, and saves its
 * data. Then starts the release on the saved data, and records its responses.
 *
 *   node_modules/.bin/node e2e/src/checks/release/make-fixture.ts <checkout of the release, after npm ci>
 */
const retriesOver = { WEBHOOK_RETRY_DELAYS: "100ms" };
/** Delay of more than a century, so that the delivery is still retrying whenever a test runs. */
const retriesLater = { WEBHOOK_RETRY_DELAYS: "999999h" };

/** Longer than every interval at which services publish what they have counted and recorded. */
const settleMs = 15_000;

const projectDir = resolve(process.argv[2] ?? ".");
const { version } = JSON.parse(await readFile(join(projectDir, "package.json"), "utf8"));
const folder = fixtureFolder(version);
// Fails if the release already has a fixture, because fixtures never change.
await mkdir(folder);
const receiver = await startReceiver();

const filled = await withRelease({ variables: retriesOver }, async ({ demo }) => {
  const result = await fillRelease(demo, receiver);
  await awaitCounted(demo, result.usage.requests);
  await awaitDelivery(demo, result.webhooks.deployments, "delivered");
  await awaitDelivery(demo, result.webhooks.chat, "failed");
  return result;
});
const { keys, usage, webhooks } = filled;
await withRelease({ variables: retriesLater, prepare }, async ({ demo }) => {
  await must(`${demo.base_url}/api/v1/flags/${filled.flags["payments.kill"]}`, {
    method: "PATCH",
    key: demo.server_key,
    body: { enabled: false },
  });
  await awaitDelivery(demo, webhooks.deployments, "delivered");
  webhooks.chat.retryingDelivery = await awaitDelivery(demo, webhooks.chat, "retrying");
});
const third = await launch(retriesLater, { projectDir, prepare });
try {
  const exchanges = await recordExchanges(third.demo, filled);
  const { services: _addresses, ...demo } = third.demo as Demo & { services: unknown };
  await writeJson(fixtureFiles.expected, { keys, usage, webhooks, exchanges });
  await writeJson(fixtureFiles.demo, demo);
  await writeJson(
    fixtureFiles.messages,
    await readMessages(`nats://${third.backendAddress("NATS")}`, operatorLogin(third.home)),
  );
} finally {
  await third.remove();
  await receiver.close();
}

function prepare(home: string): Promise<void> {
  return restoreHome(folder, home);
}

/** Runs the release, and saves its data after the stop. */
async function withRelease<T>(
  start: { variables: Record<string, string>; prepare?: (home: string) => Promise<void> },
  work: (launched: Launched) => Promise<T>,
): Promise<T> {
  const launched = await launch(start.variables, { ...start, projectDir });
  try {
    const result = await work(launched);
    await delay(settleMs);
    const code = await launched.stop();
    if (code !== 0) throw new Error(`the launcher ended with ${code}:\n${launched.output()}`);
    await saveHome(launched.home, folder);
    return result;
  } finally {
    await launched.remove();
  }
}

/** Returns the NATS login of the operator. */
function operatorLogin(home: string): { user: string; pass: string } {
  const credentials = JSON.parse(readFileSync(join(home, homeFiles.credentials), "utf8"));
  return { user: "operator", pass: credentials.nats_passwords.operator };
}

/** Returns every stored message of the streams that keep messages, by stream. */
async function readMessages(natsUrl: string, login: ReturnType<typeof operatorLogin>) {
  const streams = [snapshotBucket, quotaBucket].map(({ streamName }) => streamName);
  const messages: Record<string, unknown> = {};
  for (const stream of [flagEventsStream.name, ...streams])
    messages[stream] = (await readAll(natsUrl, stream, login)).map(({ subject, payload }) => ({
      subject,
      payload,
    }));
  return messages;
}

async function writeJson(name: string, content: unknown): Promise<void> {
  await writeFile(join(folder, name), `${JSON.stringify(content, null, 2)}\n`);
}
