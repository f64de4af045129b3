import { describe, expect, test } from "@jest/globals";
import type { IContainer } from "kubernetes-models/v1";
import { ofKind, overlays, render, workloadsOf } from "../rendered-overlay.ts";

/** Returns the violations of rules that go beyond the restricted profile. */
function problemsOf(container: IContainer): string[] {
  const { name, securityContext: context, resources } = container;
  const checks: Record<string, boolean> = {
    "may escalate privileges": context?.allowPrivilegeEscalation !== false,
    "keeps capabilities": context?.capabilities?.drop?.includes("ALL") !== true,
    "adds capabilities": context?.capabilities?.add !== undefined,
    "is privileged": context?.privileged === true,
    "may write to its root file system": context?.readOnlyRootFilesystem !== true,
    "has its own user": context?.runAsUser !== undefined,
    "opens a port of its node":
      container.ports?.some(({ hostPort }) => hostPort !== undefined) ?? false,
    "has no memory limit": resources?.limits?.memory === undefined,
    "has no requests":
      resources?.requests?.cpu === undefined || resources.requests.memory === undefined,
    "has a CPU limit, which throttles it": resources?.limits?.cpu !== undefined,
  };
  return Object.keys(checks)
    .filter((problem) => checks[problem])
    .map((text) => `${name} ${text}`);
}

/** Volume types that the manifests use and the restricted profile allows. */
const allowedVolumes = ["configMap", "emptyDir", "secret", "name"];

describe.each(overlays)("the %s overlay", (overlay) => {
  const objects = render(overlay);

  test("enforces the restricted profile in the namespace halyard", () => {
    const [namespace, ...others] = ofKind(objects, "Namespace");
    expect(others).toEqual([]);
    expect(namespace?.metadata).toMatchObject({
      name: "halyard",
      labels: {
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/audit": "restricted",
        "pod-security.kubernetes.io/warn": "restricted",
      },
    });
  });

  test("has every object in the namespace halyard", () => {
    const elsewhere = objects.filter(
      ({ kind, metadata }) => kind !== "Namespace" && metadata.namespace !== "halyard",
    );
    expect(elsewhere).toEqual([]);
  });

  test.each(workloadsOf(objects))(
    "keeps $kind $name within the restricted profile",
    ({ template }) => {
      const { spec } = template;
      expect(spec.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: expect.any(Number),
        seccompProfile: { type: "RuntimeDefault" },
      });
      expect(spec.securityContext?.runAsUser).toBeGreaterThan(0);
      expect([spec.hostNetwork, spec.hostPID, spec.hostIPC]).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
      expect([...(spec.initContainers ?? []), ...spec.containers].flatMap(problemsOf)).toEqual([]);
      const volumeTypes = (spec.volumes ?? []).flatMap((volume) => Object.keys(volume));
      expect(volumeTypes.filter((type) => !allowedVolumes.includes(type))).toEqual([]);
    },
  );

  test.each(workloadsOf(objects))(
    "gives $kind $name no access to the Kubernetes API",
    ({ template }) => {
      expect(template.spec.automountServiceAccountToken).toBe(false);
      expect(template.spec.serviceAccountName).toEqual(expect.any(String));
    },
  );
});
