import { ofKind, type RenderedObject, type Workload } from "./rendered-overlay.ts";

export type Variable = { name: string; value: string; source: "ConfigMap" | "Secret" | "pod" };

/**
 * Returns the environment variables of a workload's container, from its ConfigMaps, its Secrets and its own list. A
 * variable whose file is in a mounted Secret has the value in the Secret.
 */
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
  const mounted = mountedSecrets(workload, objects);
  return [...referenced, ...own].map((variable) => {
    const found = mounted.get(variable.value);
    return found === undefined ? variable : { ...found, name: variable.name.replace(/_FILE$/, "") };
  });
}

/** Returns the values in mounted Secrets by the paths of their files. */
export function mountedSecrets(
  { template: { spec } }: Workload,
  objects: readonly RenderedObject[],
): ReadonlyMap<string, Variable> {
  const mounts = spec.containers.flatMap(({ volumeMounts = [] }) => volumeMounts);
  const secrets = new Set(ofKind(objects, "Secret").map(({ metadata }) => metadata.name));
  const files = (spec.volumes ?? []).flatMap(({ name, secret: { secretName = "" } = {} }) => {
    // cert-manager creates the others, which contain certificates.
    if (!secrets.has(secretName)) return [];
    const folder = mounts.find((mount) => mount.name === name)?.mountPath;
    return variablesOf("Secret", secretName, objects).map(
      (variable) => [`${folder}/${variable.name}`, variable] as const,
    );
  });
  return new Map(files);
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
