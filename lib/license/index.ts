export { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
export { issueLicense, type LicenseKeyPair, newLicenseKeyPair } from './issue-license.ts';
export { type SignedLicense, type SignedLicenseOptions, signedLicense } from './license-source.ts';
export { alwaysLicensed, inspectLicense, type License, type LicenseSource, type LicenseStatus } from './verify-license.ts';
