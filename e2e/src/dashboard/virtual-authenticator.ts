import type { Page } from "playwright-core";

/** A device with passkeys in one page, which agrees to everything. */
type VirtualAuthenticator = {
  /** While it is not present, it answers no request. */
  setPresent(isPresent: boolean): Promise<void>;
};

/** Gives a page a device for passkeys, over the DevTools protocol. It lasts as long as the page. */
export async function addAuthenticator(
  page: Page,
  transport: "internal" | "usb" = "internal",
): Promise<VirtualAuthenticator> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("WebAuthn.enable");
  const { authenticatorId } = await devtools.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      ...{ protocol: "ctap2", transport, hasResidentKey: true, hasUserVerification: true },
      ...{ isUserVerified: true, automaticPresenceSimulation: true },
    },
  });
  return {
    setPresent: async (enabled) => {
      await devtools.send("WebAuthn.setAutomaticPresenceSimulation", { authenticatorId, enabled });
    },
  };
}
