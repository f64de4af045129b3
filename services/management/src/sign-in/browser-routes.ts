import type { SignInMethods } from "@halyard/contracts";
import type { App } from "@halyard/http";
import { createAuthPost } from "./auth-post.ts";
import { registerInvitationReading, registerOperatorLinks } from "./link-routes.ts";
import { createProvider } from "./oidc.ts";
import { type OidcRoutesOptions, registerOidcRoutes } from "./oidc-routes.ts";
import { registerPasskeyRoutes } from "./passkey-routes.ts";
import type { SignInSettings } from "./settings.ts";
import { registerSignOut } from "./sign-out.ts";

type BrowserRoutesOptions = Omit<OidcRoutesOptions, "settings" | "provider" | "publicUrl"> & {
  settings: SignInSettings;
  methods: SignInMethods;
};

/** Registers the routes of browsers for the ways of signing in that are switched on. */
export function registerBrowserRoutes(
  app: App,
  { settings, ...options }: BrowserRoutesOptions,
): void {
  const { publicUrl, oidc, passkeys, byOperator } = settings;
  const provider = oidc && createProvider(oidc, { publicUrl, now: options.now });
  registerSignOut(app, { ...options, publicUrl, provider });
  const authPost = createAuthPost(app, { publicUrl, now: options.now });
  registerInvitationReading(authPost, options);
  if (byOperator) registerOperatorLinks(authPost, options);
  if (passkeys) registerPasskeyRoutes(authPost, { ...options, publicUrl });
  if (oidc !== undefined && provider !== undefined)
    registerOidcRoutes(app, { ...options, publicUrl, settings: oidc, provider });
}
