(** The theorem about the disk that runs: every trace that [proved_disk] can show is one that the contract
admits ([VirtualDisk.v]) when an acknowledged operation survives every power cut ([Ack]). [proved_disk] is the
machine of [ProvedDiskMachine.v]: it runs the programs of [ProvedDisk.v] on one device. It may meet:
- any request, or several writes at once, with any proposal of a scheduler about where data go, and any upkeep
  between two requests;
- a power cut between any two block I/Os, in recovery too. Memory is lost. Each block of the device then holds
  what the last flush left there or any write since that flush, whatever the other blocks hold. If it was
  written since, it may also be torn: data and the maps of a checkpoint hold anything then ([tears]), headers
  and log records what tearing may leave of them ([tears_to]);
- any content of the device before it was formatted.
What is assumed:
- [blocks_laws]: a block holds at least one word, and words below [limit] that were put into a block are read
  back from it. [byte_blocks_laws] proves it of lists of bytes. No two lists of blocks in [compared] have the
  same digest. That set is any: the machine stops where a program would take the digest of another list
  ([Assume]), since a digest that fits into a block collides somewhere. So the theorem is about runs in which
  the lists that are digested do not collide: the data of writes and moves, the bodies of records that are
  longer than a block, and what recovery reads of such bodies and of the newest record's data;
- what a torn header or log record leaves does not unseal ([torn_unread]; a new disk of the machine, [fresh],
  has it). [sectors_tear_unread] proves it where sectors are written whole, and no two of the blocks that are
  sealed or read back have one digest ([Sectors.v]);
- the superblock is written once, when the disk is made, and no power cut comes then; a flush makes durable
  what was written before it ([Medium.v]). *)
From LogDisk Require Import VirtualDisk Codec ProvedDiskMachine ProvedDiskRefinement.

Theorem proved_disk_refines_contract `{blocks} {torn : Medium.tearing block} :
  blocks_laws → implements proved_disk Ack.
Proof. intros laws. apply proved_disk_refines. Qed.
