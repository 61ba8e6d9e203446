import Joi from 'joi';
import { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
import { checked, nameSchema } from '../schema-validation.ts';
import { withinBoundary } from './boundary.ts';
import { MAX_ID } from './fields.ts';
import type { Host } from './host.ts';
import type { Workspace } from './resources.ts';
import { unknownWorkspace } from './workspace-names.ts';

/** Hosts that are to go into another workspace. */
export interface HostMove {
    readonly ids: readonly number[];
    /** Name of the workspace. */
    readonly to: string;
}

/** They go at once, and others wait. */
const MAX_MOVED = 500;

/** The rule of a {@link HostMove}. */
export const hostMoveSchema: Joi.ObjectSchema<HostMove> = Joi.object<HostMove>({
    ids: Joi.array()
        .items(Joi.number().integer().min(1).max(MAX_ID))
        .min(1)
        .max(MAX_MOVED)
        .required()
        .description('Ids of the hosts, as lists show them'),
    to: nameSchema.trim().required().description('Name of the workspace that they go into'),
});

/** A move with each id once. @throws ScanwireError `INVALID_INPUT` with the field. */
export function checkedHostMove(move: HostMove): HostMove {
    const { ids, to } = checked(hostMoveSchema, move);
    return { ids: [...new Set(ids)], to };
}

/** What a store finds of a move. */
export interface FoundMove extends HostMove {
    /** Those of the hosts that are there. */
    readonly hosts: readonly Pick<Host, 'id' | 'address'>[];
    readonly workspace: Workspace | undefined;
    /** Those of their addresses that the workspace holds. */
    readonly held: readonly string[];
}

/** The workspace that they may go into. @throws ScanwireError As `InventoryWriter.moveHosts` says. */
export function targetOf({ ids, to, hosts, workspace, held }: FoundMove): Workspace {
    const name = JSON.stringify(to);
    if (workspace === undefined) {
        throw unknownWorkspace(to, 'to');
    }

    const there = new Set(hosts.map(({ id }) => id));
    const addresses = hosts.map(({ address }) => address);
    const within = withinBoundary(workspace);
    refuse(ids.filter((id) => !there.has(id)).map(String), 'NOT_FOUND', (missing) => `There is no host with the id ${missing}`);
    refuse(held, 'CONFLICT', (taken) => `The workspace ${name} holds ${taken} already`);
    refuse(
        addresses.filter((address, index) => addresses.indexOf(address) !== index),
        'CONFLICT',
        (twice) => `Several of the hosts have the address ${twice}, and a workspace holds each once`,
    );
    refuse(
        addresses.filter((address) => !within.letsIn({ address })),
        'CONFLICT',
        (outside) => `The boundary of the workspace ${name} leaves out ${outside}`,
    );
    return workspace;
}

/** So many are named. */
const NAMED = 10;

function refuse(wrong: readonly string[], code: ScanwireErrorCode, message: (named: string) => string): void {
    if (wrong.length > 0) {
        const more = wrong.length > NAMED ? ` and ${wrong.length - NAMED} more` : '';
        throw new ScanwireError(code, message(`${wrong.slice(0, NAMED).join(', ')}${more}`), code === 'NOT_FOUND' ? { field: 'ids' } : {});
    }
}
