import Joi from 'joi';
import { type AddressRange, addressRange, inRanges } from '../address-range.ts';
import { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
import { checked } from '../schema-validation.ts';
import type { HostInput } from './host.ts';
import { eachCount, type ImportedCounts, importCounts } from './import-counts.ts';
import type { Workspace } from './resources.ts';
import type { WorkspaceChanges } from './store.ts';

/** What of an import belongs into a workspace. */
export interface WithinBoundary {
    /** Whether a host does; one that does not is counted. */
    letsIn(host: HostInput): boolean;
    /** What was left out, as `refused`. */
    refused(): ImportedCounts;
    /**
     * To be asked before anything of it is stored, since reading takes time.
     *
     * @throws ScanwireError `CONFLICT` where the workspace has another boundary by now.
     */
    refuseOther(workspace: Workspace): void;
}

/**
 * A workspace with `limit_to_network` takes no hosts from outside of its boundary; without one there is no limit, and for a workspace that is
 * made by the import there is none.
 *
 * @throws ScanwireError `CONFLICT` where the boundary cannot be understood: nobody could say what is inside.
 */
export function withinBoundary(workspace: Workspace | undefined): WithinBoundary {
    const limit = limitOf(workspace);
    const ranges = boundaryRanges(limit);
    const isInside = inRanges(ranges);
    const counts = { hosts: 0, services: 0, notes: 0, vulns: 0 };
    return {
        letsIn({ address, services = [], notes = [], vulns = [] }) {
            if (ranges.length === 0 || isInside(address)) {
                return true;
            }

            counts.hosts += 1;
            counts.services += services.length;
            counts.notes += notes.length;
            counts.vulns += vulns.length;
            return false;
        },

        refused: () => eachCount((name) => importCounts({ refused: counts[name] })),

        refuseOther(current) {
            if (limitOf(current) !== limit) {
                throw new ScanwireError('CONFLICT', 'The boundary of the workspace changed while the hosts were read', {
                    field: 'boundary',
                });
            }
        },
    };
}

/** Empty where there is no limit. */
function limitOf(workspace: Workspace | undefined): string {
    return workspace?.limit_to_network === true ? (workspace.boundary ?? '') : '';
}

/** Longest boundary, in characters. */
const MAX_BOUNDARY = 4096;

/** The rules of {@link WorkspaceChanges}. */
export const workspaceChangesSchema: Joi.ObjectSchema<WorkspaceChanges> = Joi.object<WorkspaceChanges, true>({
    boundary: Joi.string()
        .trim()
        .max(MAX_BOUNDARY)
        .allow('', null)
        .description('Addresses, blocks and ranges with commas between them; null for none'),
    limit_to_network: Joi.boolean().description('Whether imports leave out the hosts outside of the boundary'),
});

/**
 * Changes of a workspace that can be stored.
 *
 * @throws ScanwireError `INVALID_INPUT` with the field.
 */
export function checkedWorkspaceChanges(changes: WorkspaceChanges): WorkspaceChanges {
    const { boundary, ...others } = checked(workspaceChangesSchema, changes);
    if (boundary !== undefined) {
        rangesOf(boundary ?? '', 'INVALID_INPUT', 'Boundary');
    }

    return { ...others, ...(boundary !== undefined && { boundary: boundary === '' ? null : boundary }) };
}

/** `192.0.2.1-9` for `192.0.2.1-192.0.2.9`. */
const SHORT_RANGE = /^((?:\d{1,3}\.){3})(\d{1,3})-(\d{1,3})$/;

function boundaryRanges(boundary: string): readonly AddressRange[] {
    return rangesOf(boundary, 'CONFLICT', 'The boundary of the workspace');
}

function rangesOf(boundary: string, code: ScanwireErrorCode, subject: string): readonly AddressRange[] {
    const parts = boundary.split(/[\s,]+/).filter((part) => part !== '');
    try {
        return parts.map((part) => addressRange(part.replace(SHORT_RANGE, '$1$2-$1$3')));
    } catch (cause) {
        const message = `${subject} must be a list of addresses, blocks and ranges with commas between them`;
        throw new ScanwireError(code, message, { field: 'boundary', cause });
    }
}
