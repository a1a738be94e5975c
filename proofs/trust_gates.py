"""The gates that guard what a proof is worth: nothing assumed, nothing switched off, statements as
recorded.

It has more than 400 lines because all gates share how the text of Coq is read.
"""

import re
import subprocess
from pathlib import Path

PROOFS = Path(__file__).parent
THEORIES = sorted((PROOFS / "theories").glob("*.v"))
# Where every result is stated.
STATED = [
    PROOFS / "theories" / f"{name}.v"
    for name in ("Theorems", "TreeTheorems", "WriteBackTheorems", "RotTheorems")
]
EXTRACTIONS = sorted((PROOFS / "extraction").rglob("*.v"))
ESCAPES = re.compile(
    r"\b(Admitted|admit|give_up|Axioms?|Parameters?|Conjectures?|bypass_check"
    r"|(Uns|S)et\s+(Guard|Positivity|Universe)\s+Checking|type.in.type|Impredicative"
    r"|Declare\s+ML|native_compute|Typeclasses\s+eauto\s*:=\s*debug)\b"
)
# What may stand before a command, and be taken for another one by who reads only the first word.
PREFIX = (
    r"(?:#\[[^\]]*\]\s*"
    r"|(?:Local|Global|Polymorphic|Monomorphic|Program|Time|Timeout\s+\d+|Fail)\s+)*"
)
LEAD = re.compile(r"[\s{}*+-]*")  # white space and bullets
# In a section these are what its lemmas take; outside of one each is an axiom.
ASSUMED = re.compile(PREFIX + r"(Variables?|Hypothes[ie]s|Context)\b")
OPENED = re.compile(PREFIX + r"(Section|Module(?:\s+Type)?)\s+(?:(?:Import|Export)\s+)?(\w+)")
CLOSED = re.compile(PREFIX + r"End\s+(\w+)\s*\.")
# Commands that bring in text that no gate reads, or primitives.
FOREIGN = re.compile(
    PREFIX + r"(Load|Redirect|Cd|Declare\s+Module|Primitive"
    r"|Add\s+(?:Rec\s+)?(?:ML\s+)?(?:LoadPath|Path))\b"
)
EXTRACTS = re.compile(PREFIX + r"((?:Recursive\s+|Separate\s+)?Extract(?:ion)?)\b")
FLAGS = "COQC := coqc -q -Q theories LogDisk -w -notation-overridden"
EXTRACTS_BY = re.compile(
    r"&& coqc -q -Q (?:\.\./)+theories LogDisk -o (\w+)\.vo (?:\.\./)+extraction/(?:disk/)?\1\.v$"
)
UNSAFE = (
    "Constants/Inductives relying on type-in-type",
    "Constants/Inductives relying on unsafe (co)fixpoints",
    "Inductives whose positivity is assumed",
)
RECORD = PROOFS / "statements.expected"
# What the theorems speak of, recorded too: a theorem is worth what its definitions mean.
DEFINITIONS = [
    "VirtualDisk.answered",
    "VirtualDisk.buffered",
    "VirtualDisk.forced",
    "VirtualDisk.written_through",
    "VirtualDisk.step",
    "VirtualDisk.admits",
    "VirtualDisk.shows",
    "VirtualDisk.implements",
    "VirtualDiskProperties.spares",
    "OverlappingDisk.by_blocks",
    "OverlappingDisk.acknowledged",
    "OverlappingDisk.parts",
    "OverlappingDisk.steps_of",
    "OverlappingDisk.orders",
    "OverlappingDisk.admits_overlapping",
    "OverlappingDiskColumns.without_data",
    "OverlappingDiskColumns.on_block",
    "OverlappingDiskColumns.is_whole",
    "OverlappingDiskBlocks.home",
    "OverlappingDiskBlocks.interleaves",
    "OverlappingDiskBlocks.fixes",
    "OverlappingDiskBlocks.steps_on",
    "OverlappingDiskBlocks.instant_on",
    "OverlappingDiskBlocks.shared_steps",
    "OverlappingDiskBlocks.is_fair",
    "RecordedImplementation.recorded_shows",
    "RecordedImplementation.implements_recorded",
    "RecordedImplementation.as_recorded",
    "OverlappingDiskQueue.queues_up",
    "OverlappingDiskQueue.unanswered",
    "OverlappingDiskQueue.queue_step",
    "OverlappingDiskQueue.queue_run",
    "OverlappingDiskQueue.one_move",
    "OverlappingDiskQueue.one_by_one",
    "OverlappingDiskQueue.in_front",
    "OverlappingDiskQueue.implements_overlapping",
    "ServedDiskTheorem.leg_disk",
    "ServedDiskExecution.served_shows",
    "CompositionLegs.store_does",
    "CompositionLegs.leg_does",
    "CompositionLegs.over_legs",
    "CompositionCapacity.full_stripe",
    "CompositionCapacity.keep_open",
    "CompositionCapacity.asks",
    "CompositionCapacity.disk_does",
    "CompositionPerformance.slot_in",
    "CompositionPerformance.log_begins",
    "CompositionPerformance.found",
    "CompositionPerformance.powered_off",
    "CompositionPerformance.loaded",
    "CompositionPerformance.host_does",
    "CompositionPerformance.log_structured_client",
    "TreeIndex.key",
    "TreeIndex.mba_of",
    "TreeIndex.epoch_of",
    "TreeIndex.overwritten",
    "TreeIndex.actions_of",
    "TreeIndex.reindex",
    "TreeIndex.freed_mba",
    "TreeDisk.carry_out",
    "TreeDisk.reclaim",
    "TreeDisk.write_nodes",
    "TreeDisk.dirty",
    "TreeDisk.pinned_pages",
    "TreeDisk.loaded",
    "TreeDisk.crash",
    "TreeDisk.load",
    "TreeDisk.perform",
    "TreeDisk.tree_disk",
    "TreeDiskTheorem.maps_to",
    "TreeDiskTheorem.keeps",
    "TreeDiskTheorem.no_walks",
    "TreeIndexBounds.of_record",
    "TreeIndexBounds.kept_trees",
    "TreeBlocks.entry",
    "TreeBlocks.found_below",
    "TreeBlocks.roots_of",
    "TreeBlocks.trees_of",
    "TreeBlocks.in_blocks",
    "TreeBlocks.unwritten",
    "TreeBlocks.placed_on",
    "TreeBlocks.small_numbers",
    "TreeRoots.cursors",
    "SharedTree.finish",
    "SharedTreeCursor.goes_deep",
    "TreeStore.apart",
    "TreeStore.checkpoint",
    "TreeStore.recover",
    "TreeStore.torn_headers_unread",
    "TreeStore.stored",
    "TreeStore.touched",
    "TreeStoreTheorem.goes_to",
    "TreeStoreTheorem.recovers_to",
    "TreeStoreCost.proper_places",
    "TreeStoreCost.changes",
    "Medium.may_hold",
    "Medium.survives",
    "Medium.untorn",
    "Medium.rewritten",
    "Medium.may_be",
    "Medium.may_leave",
    "Medium.io",
    "Medium.execute",
    "Codec.blocks_laws",
    "Codec.tagged",
    "Codec.untagged",
    "Codec.filled",
    "Codec.sealed",
    "Codec.unsealed",
    "Sectors.sector",
    "Sectors.same_sectors",
    "Sectors.torn_between",
    "Sectors.comparable",
    "Sectors.sectors_tear",
    "ProvedDisk.blocks_of",
    "ProvedDiskRequests.event_of",
    "ProvedDiskRequests.writes_shown",
    "DiskMachine.shown_by_cut",
    "DiskMachine.move",
    "DiskMachine.formatted",
    "DiskMachine.disk_machine",
    "DiskMachineShape.formatted_as",
    "DiskMachineProgress.all_agreed",
    "DiskMachineProgress.assumed",
    "DiskMachineProgress.turn",
    "DiskMachineProgress.recovery_turn",
    "ProvedDiskMachine.proved_programs",
    "ProvedDiskInvariant.torn_unread",
    "ProvedDiskMachine.proved_disk",
    "ProvedTreeDiskTheorem.tree_programs",
    "ProvedTreeDiskTheorem.proved_tree_disk",
    "ProvedTreeDiskTheorem.idle_memory",
    "ProvedTreeDiskTheorem.view_maps",
    "TreeLegDiskTheorem.idle_on_leg",
    "RecordedSnapshots.keeps_snapshot",
    "ProvedTreeMaps.walk",
    "ProvedTreeDisk.checkpoint",
    "ProvedTreeDisk.recover",
    "ProvedTreeDisk.walks",
    "ProvedTreeDisk.next_step",
    "ProvedTreeDiskCost.goes_into_log",
    "ProvedTreeDiskCost.goes_into_slot",
    "ProvedTreeDiskCost.root_words",
    "ProvedTreeDiskCost.new_nodes",
    "LegCorrect.cutting_laws",
    "LegCorrect.up_members",
    "LegCode.of_code",
    "LegCode.vector_of",
    "LegCode.raid_leg",
    "LegCode.mirrors",
    "Leg.pieces_of_torn",
    "Leg.gather",
    "Leg.repair",
    "LegRepair.healed",
    "LegRepair.goes",
    "LegRepair.asked",
    "LegRepair.readable",
    "Devices.may_keep",
    "Devices.down",
    "Devices.fails",
    "Devices.loses_power",
    "Devices.maybe_written",
    "Devices.array_io",
    "Devices.complete",
    "LegDiskMachine.when_cut",
    "LegDiskMachine.when_lost",
    "LegDiskMachine.replaced",
    "LegDiskMachine.move",
    "LegDiskMachine.whole",
    "LegDiskMachine.formatted",
    "LegDiskMachine.lives",
    "Progress.ends_well",
    "LegProgress.enough",
    "LegDiskProgress.turn",
    "LegDiskProgress.recovery_turn",
    "LegDiskProgress.turns_to_recover",
    "LegDiskShape.formatted_as",
    "TreeLegDiskRecovery.answers_again",
    "LegDiskProgress.weather",
    "ProvedDiskAnswers.places_for",
    "RequestProgress.planned",
    "RequestProgress.planned_group",
    "ProvedDiskAnswers.small_sizes",
    "ProvedDiskAnswers.admissible",
    "ProvedTreeDiskBounds.tree_device_blocks",
    "ProvedTreeDiskBounds.tree_reads",
    "ProvedTreeDiskBounds.store_reads",
    "ProvedTreeDiskBounds.tree_recovery_ios",
    "ProvedTreeDiskBounds.tree_request_ios",
    "ProvedTreeDiskProgress.answers_again",
    "ProvedTreeDiskAnswers.tree_places_for",
    "ProvedTreeDiskAnswers.tree_log_can_go_on",
    "ProvedTreeDiskAnswers.tree_admissible",
    "ProvedTreeDiskAnswers.tree_admissible_group",
    "ProvedDiskAnswers.small_group",
    "LegDiskGroups.group_turn",
    "ProvedDiskAnswers.admissible_group",
    "LegDiskResync.settle_turn",
    "LegDiskUpkeep.upkeep_turn",
    "LegDiskUpkeep.idle_again",
    "LegDiskUpkeep.upkeep_turns",
    "ProvedDiskBounds.upkeep_ios",
    "ProvedTreeDiskBounds.tree_upkeep_ios",
    "ServedDiskScheduler.job",
    "ServedDiskScheduler.short_write",
    "ServedDiskScheduler.short_writes",
    "ServedDiskScheduler.next_job",
    "ServedDiskScheduler.requests_of",
    "ServedDiskScheduler.blocks_of_job",
    "ServedDiskScheduler.each_alone",
    "ServedDiskScheduler.server",
    "ServedDiskScheduler.replies_of",
    "ServedDiskScheduler.server_turn",
    "ServedDiskScheduler.server_weather",
    "ServedDiskScheduler.is_answered",
    "ServedDiskScheduler.turns_alone",
    "ServedDiskScheduler.turns_of_job",
    "ServedDiskScheduler.turns_before",
    "ServedDiskScheduler.turns_for",
    "ServedLegProgress.performing",
    "ServedLegProgress.job_turn",
    "ServedLegProgress.reached_idle",
    "ServedLegProgress.within_sizes",
    "ServedDiskPrograms.turns_begun",
    "ServedDiskPrograms.turns_to_reply",
    "ServedDiskPower.power_turn",
    "ServedDiskPower.power_cut",
    "ServedDiskPower.storm",
    "ServedDiskPower.storm_turn",
    "ServedDiskPower.opened",
    "ServedDiskPower.in_power",
    "ServedDiskPower.turns_to_open",
    "ServedDiskPower.replies_despite_cuts",
    "ServedLegProgress.is_open",
    "ServedLegProgress.moves_to",
    "ServedLegProgress.is_off",
    "ServedLegProgress.power_fails",
    "ServedLegProgress.reached_closed",
    "ServedLegProgress.leg_in_power",
    "ServedLegProgress.leg_replies_to_all",
    "ServedDiskProgress.performing_here",
    "ServedDiskProgress.device_turn",
    "ServedDiskProgress.reached_idle_here",
    "ServedDiskProgress.within_sizes_here",
    "ServedDiskProgress.is_open_here",
    "ServedDiskProgress.power_fails_here",
    "ServedDiskProgress.reached_off",
    "ServedDiskProgress.device_in_power",
    "ServedDiskProgress.device_replies_to_all",
    "ServedDiskPrograms.change_ios",
    "ServedDiskPrograms.tree_change_ios_of",
    "ServedDiskPrograms.tree_request_ios_of",
    "LegProgress.ios_on",
    "ProvedDiskBounds.request_ios",
    "ProvedDiskBounds.device_blocks",
    "ServedDiskServer.happening",
    "ServedDiskServer.answer_in",
    "ServedDiskServer.event_in",
    "ServedDiskServer.history_of",
    "ServedDiskServer.pending",
    "ServedDiskServer.told",
    "ServedDiskServer.cut_told",
    "ServedDiskServer.server_run",
    "SplitFlush.flushing",
    "SplitFlush.begin_flush",
    "SplitFlush.end_flush",
    "SplitFlush.write_later",
    "SplitFlush.meanwhile",
    "SplitFlush.io_meanwhile",
    "PipelinedMachine.last_flush",
    "PipelinedMachine.pipeline",
    "PipelinedMachine.next_io",
    "PipelinedMachine.pipeline_move",
    "PipelinedMachine.pipeline_formatted",
    "PipelinedMachine.pipelined",
    "PipelinedDisk.pipelined_disk",
    "PipelinedDisk.pipelined_tree_disk",
    "PipelinedServer.pipeline_turn",
    "PipelinedProgress.flushed_answers",
    "PipelinedProgress.pipelined_turn",
    "PipelinedProgress.shadow",
    "PipelinedProgress.flight",
    "PipelinedProgress.pipelined_weather",
    "PipelinedProgress.in_pipelined_service",
    "PipelinedProgress.pipelined_replies",
    "PipelinedProgress.pipelined_replies_to_all",
    "WriteBack.blocks_delayed",
    "WriteBackDisk.write_back_disk",
    "WriteBackDisk.write_back_tree_disk",
    "WriteBackLeg.kept_in",
    "WriteBackLeg.put_back",
    "WriteBackLeg.keeping_move",
    "WriteBackLeg.keeping_formatted",
    "WriteBackLeg.write_back_leg",
    "WriteBackLegDisk.write_back_leg_disk",
    "WriteBackLegDisk.write_back_tree_leg_disk",
    "WriteBackProgress.drainable",
    "WriteBackProgress.drainable_now",
    "WriteBackProgress.tree_drainable_now",
    "WriteBackProgress.maps_fit",
    "WriteBackLegProgress.never_lost",
    "WriteBackLegProgress.flush_places",
    "RecordedTrace.brought",
    "RecordedTrace.devices_after",
    "RecordedTrace.entry_step",
    "RecordedTrace.admits_recorded",
    "ProvedDisk.used_places",
    "ProvedDisk.first_free",
    "ProvedDisk.blocks_for",
    "ProvedDisk.size_of",
    "ProvedDisk.log_pieces",
    "ProvedDisk.room_for",
    "ProvedDiskProgress.cost",
    "ProvedDiskProgress.mapped",
    "ProvedDiskProgress.record_goes",
    "ProvedDiskProgress.log_can_go_on",
    "ProvedDiskProgress.log_can_go_on_for",
    "ProvedDiskAnswers.request_blocks",
    "ProvedDiskAnswers.writes_blocks",
    "ProvedDiskBounds.log_ios",
    "ProvedDiskBounds.body_ios",
    "ProvedDiskBounds.data_ios",
    "ProvedDiskBounds.recovery_ios",
    "LegDiskProgress.recovery_turns",
]


class Broken(Exception):
    """What a gate found, one finding a line."""


def code(path: Path) -> str:
    """Return the file without comments and strings. As in Coq, comments nest and may hold
    strings."""
    text, depth, i = path.read_text(), 0, 0
    kept: list[str] = []
    while i < len(text):
        if text[i] == '"':
            end = text.index('"', i + 1) + 1
            kept += re.sub(r"[^\n]", "", text[i:end])
            i = end
        elif text.startswith("(*", i):
            depth, i = depth + 1, i + 2
        elif depth and text.startswith("*)", i):
            depth, i = depth - 1, i + 2
        else:
            kept += text[i] if not depth or text[i] == "\n" else ""
            i += 1
    return "".join(kept)


def no_escape() -> str:
    """Check that no source has Admitted or an Axiom, or switches a check off."""
    sources = [*THEORIES, *EXTRACTIONS]
    found = [
        f"{path.name}:{code(path)[: match.start()].count(chr(10)) + 1}: {match[0]}"
        for path in sources
        for match in ESCAPES.finditer(code(path))
    ]
    if found:
        raise Broken("\n".join(found))
    return f"nothing admitted or switched off in {len(sources)} files"


def sentences(text: str) -> list[tuple[int, str]]:
    """Return the commands of a file without comments, each with the line, counted from 1, on which
    it begins. A full stop ends one if white space follows."""
    found, start, line, counted = [], 0, 1, 0
    for stop in re.finditer(r"(?<!\.)\.(?=\s|\Z)", text):
        lead = LEAD.match(text, start)
        begins = lead.end() if lead else start
        line, counted = line + text.count("\n", counted, begins), begins
        found.append((line, text[begins : stop.end()]))
        start = stop.end()
    return found


def outside_sections(text: str) -> list[int]:
    """Return the lines, counted from 1, on which something is assumed outside of every section."""
    open_now: list[str] = []
    found = []
    for number, sentence in sentences(text):
        if opened := OPENED.match(sentence):
            if ":=" not in sentence:
                open_now.append(opened[1].split()[0])
        elif CLOSED.match(sentence) and open_now:
            open_now.pop()
        elif ASSUMED.match(sentence) and "Section" not in open_now:
            found.append(number)
    return found


def foreign(text: str, *, extraction: bool) -> list[tuple[int, str]]:
    """Return the commands that bring in what no gate reads. Only files of `extraction` may say how
    something is extracted: elsewhere it would change what runs without a word in them."""
    wanted = [FOREIGN] if extraction else [FOREIGN, EXTRACTS]
    return [
        (number, match[1])
        for number, sentence in sentences(text)
        for pattern in wanted
        if (match := pattern.match(sentence))
    ]


def nothing_foreign() -> str:
    """Check that no file is loaded as text, that nothing is primitive, and that theories say
    nothing of extraction."""
    found = [
        f"{path.name}:{number}: {command}"
        for path in [*THEORIES, *EXTRACTIONS]
        for number, command in foreign(code(path), extraction=path in EXTRACTIONS)
    ]
    found += [
        f"{path.name}: requires {name}"
        for path in THEORIES
        for name in re.findall(r"\bExtr\w+", code(path))
    ]
    if found:
        raise Broken("\n".join(found))
    return "every theory is all that is compiled of it"


def no_assumption() -> str:
    """Check that no Variable, Hypothesis or Context stands outside of a section, where it would be
    an axiom."""
    found = [
        f"{path.name}:{number}: an assumption outside of every section"
        for path in [*THEORIES, *EXTRACTIONS]
        for number in outside_sections(code(path))
    ]
    if found:
        raise Broken("\n".join(found))
    return "every assumption is a section's"


def flags() -> str:
    """Coq runs with the flags that are known here, and no others."""
    makefile = (PROOFS / "Makefile").read_text()
    wrong = [line for line in makefile.splitlines() if line.startswith("COQC") and line != FLAGS]
    wrong += [
        line.strip()
        for line in makefile.splitlines()
        if re.search(r"\bcoqc\b|\bcoqtop\b|COQ(FLAGS|EXTRA|PATH|LIB)", line)
        and not line.startswith("#")
        and line != FLAGS
        and not EXTRACTS_BY.search(line)
    ]
    if wrong or FLAGS not in makefile.splitlines():
        raise Broken(f"the Makefile calls coqc by other flags: {wrong}")
    project = (PROOFS / "_CoqProject").read_text().split()
    if project != ["-Q", "theories", "LogDisk", "-arg", "-w", "-arg", "-notation-overridden"]:
        raise Broken(f"_CoqProject has other flags: {project}")
    return "coqc and the editor use the flags that are known"


def printed_statements() -> str:
    """Return what Coq prints as the type of each theorem, and the definitions that they speak
    of."""
    assumed = code(PROOFS / "theories" / "Assumptions.v")
    bundles = re.findall(r"Definition all_\w+ :=(.*?)\]\.", assumed, re.S)
    lines = ["Set Printing Width 100.", "Set Printing Implicit."]
    for text in (*map(code, STATED), assumed):
        lines += re.findall(r"^From .*?\.$", text, re.M | re.S)
    lines += re.findall(r"^Import .*?\.$", assumed, re.M | re.S)
    lines += [f"Check {name}." for bundle in bundles for name in re.findall(r"@[\w.]+", bundle)]
    modules_of = " ".join(sorted({name.split(".")[0] for name in DEFINITIONS}))
    lines += [f"From LogDisk Require {modules_of}.", *(f"Print {name}." for name in DEFINITIONS)]
    path = PROOFS / "build" / "Statements.v"
    path.write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        ["coqc", "-q", "-Q", "../theories", "LogDisk", "-w", "none", path.name],
        cwd=path.parent,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Broken(f"statements: {done.stderr}")
    return done.stdout


def statements() -> str:
    """Check that every statement, and the definitions it rests on, are those of the record, which
    `gates.py record` writes."""
    now = printed_statements()
    if not RECORD.exists() or now != RECORD.read_text():
        (PROOFS / "build" / RECORD.name).write_text(now)
        raise Broken(
            f"{RECORD.name} differs from build/{RECORD.name}: compare, then `make statements`"
        )
    recorded = len(re.findall(r"^@?[a-zA-Z_.]+$", now, re.M))
    return f"{recorded} statements and definitions are as recorded"


def checked_again() -> str:
    """coqchk, an independent and smaller checker, accepts every compiled file of ours.

    It finds no axiom, and nothing that relies on a check that was switched off. What Debian
    compiled (the standard library, stdpp) it takes as it is. Computations run on the virtual
    machine, as when the files were built; reducing them term by term would take six times as long.
    """
    ours = [part for path in THEORIES for part in ("-norec", f"LogDisk.{path.stem}")]
    done = subprocess.run(
        [
            "coqchk",
            "-silent",
            "-o",
            "-bytecode-compiler",
            "yes",
            "-Q",
            "theories",
            "LogDisk",
            *ours,
        ],
        cwd=PROOFS,
        capture_output=True,
        text=True,
    )
    said = done.stdout + done.stderr
    if done.returncode or "* Theory: Set is predicative" not in said:
        raise Broken(f"coqchk: {said}")
    for name in ("Axioms", *UNSAFE):
        section = re.search(rf"\* {re.escape(name)}:(.*?)(?=\n\s*\n|\Z)", said, re.S)
        if not section:
            raise Broken(f"coqchk says nothing of {name}: {said}")
        listed = section[1].split()
        if named := [word for word in listed if "LogDisk" in word]:
            raise Broken(f"coqchk: {name}: {named}")
        if name != "Axioms" and listed != ["<none>"]:
            raise Broken(f"coqchk: {name}: {listed}")
    return f"coqchk accepts {len(THEORIES)} files, and finds nothing unsafe"
