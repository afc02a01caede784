// Main of a simulator that dumps a part of its run: cocotb through VPI, and a VCD with the time
// steps in which the output ONCYCLE_DUMP of the top level is 1.  `+waves=FILE` names the VCD;
// without it nothing is written.  The order of callbacks within a time step is that of
// IEEE 1800-2017, 4.4 and 36.9.

#include <algorithm>
#include <memory>
#include <string>

#include "Vtop.h"
#include "verilated.h"
#include "verilated_vcd_c.h"
#include "verilated_vpi.h"

extern "C" void vlog_startup_routines_bootstrap();

static vluint64_t now = 0;
static std::unique_ptr<VerilatedVcdC> vcd;

// What $time shows.
double sc_time_stamp() { return static_cast<double>(now); }

// Callbacks on changed values change values in turn: call them until nothing changes.
static void settle() {
    while (VerilatedVpi::callValueCbs()) {
    }
}

static void write_inputs() {
    VerilatedVpi::doInertialPuts();
    settle();
}

// One time step, up to the point where nothing in it will change any more.
static void step(Vtop& top) {
    do {
        do {
            top.eval_step();
            VerilatedVpi::clearEvalNeeded();
            write_inputs();
        } while (VerilatedVpi::evalNeeded());
        VerilatedVpi::callCbs(cbReadWriteSynch);
        write_inputs();
    } while (VerilatedVpi::evalNeeded());
    top.eval_end_step();
    VerilatedVpi::callCbs(cbReadOnlySynch);
}

// Move on to the next time step; false if there is none.
static bool advance(Vtop& top) {
    const vluint64_t none = ~static_cast<vluint64_t>(0);
    const vluint64_t design = top.eventsPending() ? top.nextTimeSlot() : none;
    const vluint64_t next = std::min(VerilatedVpi::cbNextDeadline(), design);
    if (next == none) return false;
    now = next;
    VerilatedVpi::callCbs(cbNextSimTime);
    settle();
    VerilatedVpi::callTimedCbs();
    settle();
    return true;
}

static void finish() {
    VerilatedVpi::callCbs(cbEndOfSimulation);
    if (vcd) vcd->close();
}

int main(int argc, char** argv) {
    Verilated::commandArgs(argc, argv);
    Verilated::fatalOnVpiError(false);  // cocotb asks for things that may not be there
    Verilated::traceEverOn(true);
    const auto top = std::make_unique<Vtop>("");
    const std::string option = "waves=";
    const std::string found = Verilated::commandArgsPlusMatch(option.c_str());
    if (!found.empty()) {
        vcd = std::make_unique<VerilatedVcdC>();
        top->trace(vcd.get(), 99);
        vcd->open(found.substr(1 + option.size()).c_str());
        if (!vcd->isOpen()) return 2;
    }
    vlog_startup_routines_bootstrap();
    Verilated::addExitCb([](void*) { finish(); }, nullptr);
    VerilatedVpi::callCbs(cbStartOfSimulation);
    settle();
    while (!Verilated::gotFinish()) {
        step(*top);
        if (vcd && top->ONCYCLE_DUMP) vcd->dump(now);
        if (!advance(*top)) break;
    }
    top->final();
    finish();
    vcd.reset();  // before the model that it traces
    return Verilated::threadContextp()->errorCount() > 0 ? 1 : 0;
}
