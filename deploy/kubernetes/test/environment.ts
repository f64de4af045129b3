import type { RenderedObject, Workload } from "./rendered-overlay.ts";

export type Variable = { name: string; value: string; source: "ConfigMap" | "Secret" | "pod" };

/** Returns the environment variables of a workload's container, from its ConfigMaps, its Secrets and its own list. */
export function environmentOf(
  workload: Workload,
  objects: readonly RenderedObject[],
): readonly Variable[] {
  const container = workload.template.spec.containers[0];
  const referenced = (container?.envFrom ?? []).flatMap(({ configMapRef, secretRef }) => [
    ...variablesOf("ConfigMap", configMapRef?.name, objects),
    ...variablesOf("Secret", secretRef?.name, objects),
  ]);
  const own = (container?.env ?? []).map(
    ({ name, value = "" }): Variable => ({ name, value, source: "pod" }),
  );
  return [...referenced, ...own];
}

function variablesOf(
  source: "ConfigMap" | "Secret",
  name: string | undefined,
  objects: readonly RenderedObject[],
): Variable[] {
  if (name === undefined) return [];
  const found = objects.find(({ kind, metadata }) => kind === source && metadata.name === name);
  if (found === undefined) throw new Error(`There is no ${source} ${name}.`);
  return Object.entries(found.data ?? found.stringData ?? {}).map(([variable, value]) => ({
    name: variable,
    value,
    source,
  }));
}
