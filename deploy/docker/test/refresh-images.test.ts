import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { projectRoot } from "./compose-file.ts";

/** A copy of the files that name images, and a fake Docker that knows one digest. */
const folder = mkdtempSync(join(tmpdir(), "halyard-images-"));
afterAll(() => rmSync(folder, { recursive: true }));
const files = [
  "docker-compose.yml",
  "deploy/docker/Dockerfile",
  "deploy/docker/refresh-images",
  "deploy/kubernetes/overlays/local/kustomization.yaml",
  "deploy/kubernetes/overlays/production/kustomization.yaml",
  "deploy/kubernetes/components/haproxy/kustomization.yaml",
];
for (const file of files) {
  mkdirSync(join(folder, dirname(file)), { recursive: true });
  cpSync(join(projectRoot, file), join(folder, file));
}
const digest = `sha256:${"0a".repeat(32)}`;
writeFileSync(join(folder, "docker"), `#!/bin/sh\necho ${digest}\n`);
chmodSync(join(folder, "docker"), 0o755);

/** Returns the lines that differ from the project's file. */
function changedLines(file: string): string[] {
  const before = new Set(readFileSync(join(projectRoot, file), "utf8").split("\n"));
  const after = readFileSync(join(folder, file), "utf8").split("\n");
  return after.filter((line) => !before.has(line)).map((line) => line.trim());
}

describe("refresh-images", () => {
  it("pins the tags and the digests in all files", () => {
    const { status } = spawnSync(
      "sh",
      [
        "deploy/docker/refresh-images",
        "postgres:18.9",
        "nats:2.99.1",
        "haproxy:3.9.9",
        "node:24.99.0-slim",
      ],
      { cwd: folder, env: { PATH: `${folder}:${process.env.PATH}` } },
    );
    expect(status).toBe(0);
    expect(files.map(changedLines)).toEqual([
      [
        `image: postgres:18.9@${digest}`,
        `image: nats:2.99.1@${digest}`,
        `image: haproxy:3.9.9@${digest}`,
      ],
      [`ARG NODE_IMAGE=node:24.99.0-slim@${digest}`],
      [],
      [`newTag: "2.99.1@${digest}"`, `newTag: "18.9@${digest}"`],
      [`newTag: "2.99.1@${digest}"`],
      [`newTag: "3.9.9@${digest}"`],
    ]);
  });
});
