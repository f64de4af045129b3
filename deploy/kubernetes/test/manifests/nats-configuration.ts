import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { natsUsers } from "@halyard/contracts";
import { makeCertificates, natsServerBinary } from "@halyard/testing";
import { expect, test } from "@jest/globals";
import { ofKind, overlays, render } from "../rendered-overlay.ts";

/** The environment of a NATS pod. */
const environment = Object.fromEntries(
  natsUsers
    .map((user) => user.replaceAll("-", "_").toUpperCase())
    .map((name) => [`${name}_PASSWORD`, `n-${name}`])
    .concat([["POD_NAME", "nats-0"]]),
);

test.each(overlays)("nats-server accepts the configuration of the %s overlay", async (overlay) => {
  const directory = mkdtempSync(join(tmpdir(), "halyard-nats-configuration-"));
  try {
    const { caFile, certFile, keyFile } = makeCertificates(directory);
    const files = ofKind(render(overlay), "ConfigMap").find(
      ({ data }) => data?.["nats.conf"],
    )?.data;
    for (const [name, text] of Object.entries(files ?? {}))
      writeFileSync(
        join(directory, name),
        text
          .replaceAll("/etc/nats-tls/ca.crt", caFile)
          .replaceAll("/etc/nats-tls/tls.crt", certFile)
          .replaceAll("/etc/nats-tls/tls.key", keyFile),
      );
    const { status, stderr } = spawnSync(
      await natsServerBinary(),
      ["-t", "--config", join(directory, "nats.conf")],
      { env: environment, encoding: "utf8" },
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining("valid") });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
